import type { Measure } from './measure.ts'
import { MEASURES } from './measures/index.ts'
import { load, report, type Result } from './report.ts'

const GROUPS = ['embedded', 'tunnel', 'cluster'] as const
const ALL = GROUPS.flatMap((group) => MEASURES[group])

/** The measures that a word on the command line stands for: one by its name, or all of a group. */
function named(word: string): readonly Measure[] {
  const group = GROUPS.find((known) => known === word)
  return group ? MEASURES[group] : ALL.filter(({ name }) => name === word)
}

/**
 * `npm run bench -- [names]`: runs the measures of the embedded home, or those named (`cluster`: all of the other home; `tunnel`: an edge beside sshd with nginx), and prints their
 * results as Markdown. Exit 1 when a target is missed.
 */
async function main(words: readonly string[]): Promise<0 | 1 | 2> {
  const unknown = words.filter((word) => named(word).length === 0)
  if (unknown.length > 0) {
    const known = [...GROUPS, ...ALL.map(({ name }) => name)]
    console.error(`bench: there is no measure ${unknown.join(', ')}; there are: ${known.join(', ')}.`)
    return 2
  }
  const results: Result[] = []
  for (const measure of new Set(words.length === 0 ? MEASURES.embedded : words.flatMap(named))) {
    console.error(`bench: ${measure.name} ...`)
    const before = load()
    const findings = await measure.run()
    results.push({ measure, findings, load: { before, after: load() } })
  }
  console.log(report(results, new Date()))
  return results.some(({ findings }) => findings.some(({ holds }) => holds === false)) ? 1 : 0
}

process.exitCode = await main(process.argv.slice(2))
