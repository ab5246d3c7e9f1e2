// The order of search results: the guide, examples, the reference, what was measured. Sphinx adds this
// to its scores: 15 for a word of a title, 5 for a word of the text, up to 100 for `searched` words.
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, , , about, score, , kind]) => {
    const added = [
      [/^(start|guide\/(?!index))/, 6],
      [/^auto_examples\/plot/, 4],
      [/^(theory|deep|scale)/, -2],
      [/^(results|benchmarks|studies|changelog|architecture|policy)/, -8],
    ];
    const folder = added.find(([pattern]) => pattern.test(page));
    const isMember = kind === "object" && /method|property|attribute/.test(about);
    return score + (folder ? folder[1] : 0) - (isMember ? 12 : 0);
  },
};
