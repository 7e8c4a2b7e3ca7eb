"""From names to numbers: vocabularies, fuzzy operators, and the evaluator that scores transitions."""
