/** Name of the view on top. It comes first in the alphabet, so that a list of views begins with it. */
export const TOP_VIEW = 'v00'

/**
 * Returns statements of a tenant that make views of which each reads the one below twice, over the table `t` of one column `n`: to open the top
 * view, the server opens 2 ** `levels` views. They are made from the top, while the view below is small, as MySQL 8.0 alone does not allow.
 */
export function nestedViews(levels: number): readonly string[] {
  const view = (level: number): string => `v${String(levels - level).padStart(2, '0')}`
  const all = Array.from({ length: levels + 1 }, (_, level) => level)
  return [
    'CREATE TABLE t (n INT)',
    ...all.map((level) => `CREATE VIEW ${view(level)} AS SELECT n FROM t`),
    ...all
      .slice(1)
      .toReversed()
      .map((level) => `ALTER VIEW ${view(level)} AS SELECT n FROM ${view(level - 1)} UNION ALL SELECT n FROM ${view(level - 1)}`),
  ]
}
