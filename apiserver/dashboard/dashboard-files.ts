import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

/** Directory that build-dashboard.ts writes. It is inside `node_modules`, and so part of the image. */
export const BUILT = fileURLToPath(new URL('../../node_modules/.dashboard/', import.meta.url))

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.html': 'text/html; charset=utf-8',
}

export interface DashboardFile {
  readonly type: string
  readonly plain: Buffer
  readonly gzip: Buffer
}

/** Built dashboard, in memory: about 200 KB. */
export interface DashboardFiles {
  readonly page: DashboardFile
  /** Assets by name. The names of script and style contain a hash of the content; `icon.svg` does not. */
  readonly assets: ReadonlyMap<string, DashboardFile>
}

/** Reads the built dashboard. Returns undefined when it is not built. */
export function readDashboard(directory: string = BUILT): DashboardFiles | undefined {
  const assets = join(directory, 'assets')
  try {
    return {
      page: readOne(join(directory, 'index.html')),
      assets: new Map(readdirSync(assets).map((name) => [name, readOne(join(assets, name))])),
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

function readOne(path: string): DashboardFile {
  const plain = readFileSync(path)
  return { plain, gzip: gzipSync(plain, { level: 9 }), type: TYPES[extname(path)] ?? 'application/octet-stream' }
}
