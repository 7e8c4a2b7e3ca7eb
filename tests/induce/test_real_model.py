"""Real language models: llama.cpp with 135M parameters over HTTP, and a tiny transformers model made on the spot.

They are no inducers. That calls succeed, that constrained answers parse, and that data has the last word counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nser.agents.explore import RuleExplorer
from nser.envs.make import make_env, vocabulary_of
from nser.experience.files import save_trajectories
from nser.experience.record import record
from nser.experience.trajectories import Trajectories
from nser.induce.chat import ChatProposer, ChatSettings
from nser.induce.decoding import decoding_grammar
from nser.induce.endpoint import ChatEndpoint, EndpointSettings
from nser.induce.evidence import Evidence
from nser.induce.model import TooLongError
from nser.induce.settings import InductionSettings
from nser.rules.parse import parse_rules
from nser.rules.scope import check_names
from tests.cli.test_cli import nser
from tests.induce import llama_server
from tests.induce.planted import CHAIN, NUMBERS, play

SMALL = ChatSettings(episode_tokens=120, max_tokens=110, wanted=3)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    reason = llama_server.missing()
    if reason:
        pytest.skip(reason)
    with llama_server.running() as url:
        yield url


def evidence() -> Evidence:
    return Evidence.from_trajectories(play(60, 0), CHAIN, InductionSettings())


def test_llama_cpp_obeys_the_grammar_and_what_it_writes_parses(address: str) -> None:
    model = ChatEndpoint("smollm2", address, EndpointSettings(timeout=120))
    assert model.engine() == "llguidance"
    assert model.enforced is True
    proposer = ChatProposer(model, SMALL)
    text = proposer.propose(evidence())
    assert not proposer.failures
    assert proposer.spent.calls == 1
    assert proposer.spent.completion_tokens > 10
    parsed = parse_rules(text)
    # It repeats itself, and a name that was given already is all that may be wrong.
    assert {problem.code for problem in parsed.problems} <= {"R107"}, text
    assert parsed.rules
    for rule in parsed.rules:
        assert not check_names(rule, CHAIN.signature), text


def test_nser_induce_end_to_end_on_doorkey(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line, the `openai` client, the grammar, a real server, and selection by data."""
    data = tmp_path / "doorkey.npz"
    save_trajectories(data, _doorkey_episodes())
    words = ["induce", str(data), "--env", "MiniGrid-DoorKey-5x5-v0", "--replies", str(tmp_path / "replies")]
    words += ["--episode-tokens", "200", "--answer-tokens", "100", "--repairs", "0", "--llm"]
    code, out, err = nser(capsys, *words, f"both:{address}#smollm2")
    assert code == 0, err
    assert "1 call and 0 recorded ones" in out
    assert "symbolic learner proposed alone" not in err
    assert "rules, version 1" in out


GUIDE = """
rule pick: forall t in step: facing(t, key) & action_is(t, pickup) -> good(t)
rule open: forall t in step: facing(t, door) & carrying(t) & ~door_open(t) & action_is(t, toggle) -> good(t)
rule walk [0.4]: forall t in step: ~facing(t, wall) & action_is(t, forward) -> good(t)
"""


def _doorkey_episodes() -> Trajectories:
    """Random play that knows a little, so that some episodes end well and others do not."""
    env = make_env("MiniGrid-DoorKey-5x5-v0", max_steps=60)
    guide = RuleExplorer(vocabulary_of(env), 0.6, seed=0)
    guide.set_rules(parse_rules(GUIDE).rules)
    return record(env, lambda observation: int(guide.actions(observation[None])[0]), 60, seed=0)


def test_without_a_grammar_the_same_model_writes_prose_that_hurts_nobody(address: str) -> None:
    free = ChatSettings(episode_tokens=120, max_tokens=40, constrained=False)
    text = ChatProposer(ChatEndpoint("smollm2", address, EndpointSettings(timeout=120)), free).propose(evidence())
    parsed = parse_rules(text)
    assert all(problem.code for problem in parsed.problems)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-layer Llama with random weights and a byte-level tokenizer, saved as users save models."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {symbol: number for number, symbol in enumerate(["<s>", "</s>", *alphabet])}
    inner = Tokenizer(models.BPE(vocab=words, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=16384,
        bos_token_id=0,
        eos_token_id=1,
    )
    path = tmp_path_factory.mktemp("tiny")
    LlamaForCausalLM(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def test_a_local_model_is_held_to_the_grammar(tiny: Path) -> None:
    """Random weights write noise; under the mask every finished line is a rule of the vocabulary."""
    from nser.induce.local_model import LocalModel

    model = LocalModel(str(tiny))
    proposer = ChatProposer(model, ChatSettings(episode_tokens=60, max_tokens=400, samples=2, temperature=1.0))
    text = proposer.propose(evidence())
    parsed = parse_rules(text)
    assert {problem.code for problem in parsed.problems} <= {"R107"}, text
    assert not any(check_names(rule, CHAIN.signature) for rule in parsed.rules)
    assert model.count_tokens("rule") == 4


def test_a_prompt_beyond_a_local_models_room_is_told(tiny: Path) -> None:
    from nser.induce.cassette import Call
    from nser.induce.local_model import LocalModel

    with pytest.raises(TooLongError, match="has room for"):
        LocalModel(str(tiny)).complete(Call("m", ({"role": "user", "content": "go " * 30_000},), {"max_tokens": 9}))


def test_equal_calls_give_equal_answers_and_numbers_another(tiny: Path) -> None:
    from nser.induce.cassette import Call
    from nser.induce.local_model import LocalModel

    grammar = decoding_grammar("llguidance", CHAIN.signature)
    calls = [
        Call("m", ({"role": "user", "content": "go"},), {"max_tokens": 60, "temperature": 1.0}, grammar, "", number)
        for number in (0, 0, 1)
    ]
    answers = [LocalModel(str(tiny)).complete(call).text for call in calls]
    assert answers[0] == answers[1]
    assert answers[0] != answers[2]
    assert answers[0].startswith("rule ")


@pytest.mark.parametrize("vocabulary", [CHAIN, NUMBERS], ids=["predicates", "numbers"])
def test_the_decoding_grammar_writes_what_the_printer_writes(vocabulary: type(CHAIN)) -> None:  # type: ignore[valid-type]
    """Rules that the symbolic learner prints, names aside, are sentences of the grammar."""
    import re

    import llguidance

    from nser.induce.symbolic import SymbolicProposer

    text = SymbolicProposer().propose(Evidence.from_trajectories(play(400, 3), vocabulary, InductionSettings()))
    lines = [re.sub(r"rule \w+( \[[^\]]*\])?:", "rule some_name:", line) for line in text.splitlines()]
    assert lines
    vocabulary_of_bytes = llguidance.LLTokenizer("byte")
    for engine in ("llguidance", "openai"):
        grammar = llguidance.grammar_from("lark", decoding_grammar(engine, vocabulary.signature))
        for line in lines:
            matcher = llguidance.LLMatcher(vocabulary_of_bytes, grammar)
            tokens = vocabulary_of_bytes.tokenize_str(line)
            assert matcher.validate_tokens(tokens) == len(tokens), line
