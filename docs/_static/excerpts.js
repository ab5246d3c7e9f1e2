// Excerpts of search results are sentences: no formulas, no code, no breadcrumbs, no notes on downloads.
const wholeText = Search.htmlToText;
Search.htmlToText = (html, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  const omitted = ".math, pre, .bd-header-article, .sphx-glr-download-link-note, dl.field-list";
  page.querySelectorAll(omitted).forEach((element) => element.remove());
  return wholeText(page.documentElement.outerHTML, anchor);
};
