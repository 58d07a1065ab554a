import { type Measure, load, report, type Result } from './measure.ts'
import { MEASURES } from './measures/index.ts'

const GROUPS = ['embedded', 'motors', 'tunnel', 'cluster'] as const
const ALL = GROUPS.flatMap((group) => MEASURES[group])

/** Returns the measures for an argument: one by its name, or all of a group. */
function named(word: string): readonly Measure[] {
  const group = GROUPS.find((known) => known === word)
  return group ? MEASURES[group] : ALL.filter(({ name }) => name === word)
}

/**
 * Program of `npm run bench -- [names]`. It runs the measures of embedded mode, or the named ones (`cluster`: all of cluster
 * mode; `motors`: servers beside PostgreSQL; `tunnel`: an edge compared with sshd behind nginx), and prints their results as Markdown. It exits with 1 when a target
 * is missed.
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
