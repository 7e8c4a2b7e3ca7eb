"""Environments that speak in symbols, and their vocabularies.

`make` makes them and finds their vocabulary; `symbolic` lists the ids that nser makes itself.

- `doorkey`, `locked_rooms`, `open_rooms`: MiniGrid's worlds as facts (`grid` is what they share, `…_vocabulary` what
  may be said of them); `sokoban`: ours.
- `toy_text`: gymnasium's small maps; `known`: names and units of well-known features; `automatic`: names for the
  numbers of any other space.
- `text_lake`, `text_sokoban`, `text_arithmetic`: games and tasks in words for language models (`text_game` is what the
  games share); `text_play` plays them and keeps the transcripts.
- `check` says which predicates say nothing; `seeding` makes runs resumable.
"""
