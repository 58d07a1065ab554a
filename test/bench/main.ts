import { MEASURES } from './measures/index.ts'
import { load, report, type Result } from './report.ts'

/** `npm run bench -- [names]`: runs all measures or those named, and prints their results as Markdown. Exit 1 when a target is missed. */
async function main(names: readonly string[]): Promise<0 | 1 | 2> {
  const unknown = names.filter((name) => !MEASURES.some((measure) => measure.name === name))
  if (unknown.length > 0) {
    console.error(`bench: there is no measure ${unknown.join(', ')}; there are: ${MEASURES.map(({ name }) => name).join(', ')}.`)
    return 2
  }
  const results: Result[] = []
  for (const measure of MEASURES.filter(({ name }) => names.length === 0 || names.includes(name))) {
    console.error(`bench: ${measure.name} ...`)
    const before = load()
    const findings = await measure.run()
    results.push({ measure, findings, load: { before, after: load() } })
  }
  console.log(report(results, new Date()))
  return results.some(({ findings }) => findings.some(({ holds }) => holds === false)) ? 1 : 0
}

process.exitCode = await main(process.argv.slice(2))
