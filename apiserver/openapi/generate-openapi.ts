import { readFile, writeFile } from 'node:fs/promises'
import { openApiDocument } from './openapi.ts'
import { allRoutes, type RoutesWiring } from '../api.ts'

const FILE = new URL('../../docs/openapi.json', import.meta.url)

/** Returns a placeholder for the dependencies of all routes. A declaration may read its parts; only a handler may call them. */
function noWiring(): RoutesWiring {
  const nothing: object = new Proxy(() => undefined, {
    get: (_target, name) => (name === Symbol.toPrimitive ? () => 0 : nothing),
    apply: () => {
      throw new Error('a route calls a dependency in its declaration; call it in the handler')
    },
  })
  return nothing as RoutesWiring
}

/** Whether the file has the same content, whatever its formatting. */
async function isCurrent(document: string): Promise<boolean> {
  try {
    return JSON.stringify(JSON.parse(await readFile(FILE, 'utf8'))) === document
  } catch {
    return false
  }
}

const document = JSON.stringify(openApiDocument(allRoutes(noWiring())))
if (!process.argv.includes('--check')) {
  await writeFile(FILE, `${JSON.stringify(JSON.parse(document), null, 2)}\n`)
} else if (!(await isCurrent(document))) {
  console.error('docs/openapi.json is stale: run npm run generate')
  process.exitCode = 1
}
