import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

/** Files of the repository with the files that each imports; imports of types alone count. */
function readImports(): ReadonlyMap<string, readonly string[]> {
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts', '*.tsx'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  const present = files.split('\n').filter((file) => file !== '' && ts.sys.fileExists(join(ROOT, file)))
  const all = new Set(present)
  return new Map(
    present.map((file) => {
      const { importedFiles } = ts.preProcessFile(readFileSync(join(ROOT, file), 'utf8'))
      const targets = importedFiles.map(({ fileName }) => join(dirname(file), fileName))
      return [file, targets.filter((target) => all.has(target))]
    }),
  )
}

/** Returns one circle of imports, its first file repeated at the end, or undefined when there is none. */
function findCircle(imports: ReadonlyMap<string, readonly string[]>): readonly string[] | undefined {
  const done = new Set<string>()
  function visit(file: string, path: readonly string[]): readonly string[] | undefined {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
    if (done.has(file)) return undefined
    for (const target of imports.get(file) ?? []) {
      const circle = visit(target, [...path, file])
      if (circle) return circle
    }
    done.add(file)
    return undefined
  }
  for (const file of imports.keys()) {
    const circle = visit(file, [])
    if (circle) return circle
  }
  return undefined
}

test('findCircle names the files of a circle', () => {
  const imports = new Map([
    ['a', ['b']],
    ['b', ['c', 'd']],
    ['c', []],
    ['d', ['b']],
  ])
  expect(findCircle(imports)).toEqual(['b', 'd', 'b'])
})

test('no file imports itself through others', () => {
  const imports = readImports()
  expect(imports.size).toBeGreaterThan(400)
  expect(findCircle(imports)).toBeUndefined()
})
