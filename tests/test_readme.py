"""The README's Python runs as it stands, from top to bottom, in one session."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_code_of_the_readme_runs(capsys):
    assert len(BLOCKS) >= 3
    session: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, str(README), "exec"), session)
    assert "0." in capsys.readouterr().out
