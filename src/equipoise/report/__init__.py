"""Which class weights? Classifiers compared on rows they have not seen, and one page about it.

Computing and drawing are apart: :func:`compare` fits and judges and holds plain numbers, and
:mod:`equipoise.report.render` turns these into a page.
"""

from equipoise.report.compare import Comparison, compare, compare_file

__all__ = ["Comparison", "compare", "compare_file"]
