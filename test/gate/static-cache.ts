import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/** Caches of the static checks. They name files by absolute paths and files by digests of their content. */
const FILES = ['eslint', 'prettier/.prettier-cache', 'tsc.tsbuildinfo', 'tsc-dashboard.tsbuildinfo']
/** Stands for the path of the checkout in a kept cache. */
const CHECKOUT = '@checkout@'

const own = (file: string): string => join('node_modules/.cache', file)
const kept = (file: string): string => join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'mooring-tests/static', file)

/** Fills the caches of a fresh clone from those that another clone has kept on this machine. */
export async function restoreStaticCaches(): Promise<void> {
  for (const file of FILES) await copy(kept(file), own(file), [CHECKOUT, process.cwd()])
}

/** Keeps the caches of this clone for the next. */
export async function keepStaticCaches(): Promise<void> {
  for (const file of FILES) await copy(own(file), kept(file), [process.cwd(), CHECKOUT])
}

async function copy(from: string, to: string, [path, replacement]: readonly [string, string]): Promise<void> {
  const text = await readFile(from, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return
  await mkdir(dirname(to), { recursive: true })
  await writeFile(to, text.replaceAll(path, replacement))
}
