import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { megabytes } from './archives.ts'

interface ProgressDeps {
  /** Directory that the clients download into. */
  readonly directory: string
  /** Size of all archives. */
  readonly bytes: number
  readonly print: (line: string) => void
}

export interface Progress extends Disposable {
  /** Prints that the downloads are complete. */
  readonly done: () => void
}

/** Part of the paths of apt's lists of packages, which are no archives. */
const LISTS = '/apt.state'

/** Time between two lines. */
const EVERY_MS = 5_000

/**
 * Prints the progress of downloads every 5 s, measured by the size of their directory, because clients report it differently or not at all.
 */
export function showProgress({ directory, bytes, print }: ProgressDeps): Progress {
  const begin = performance.now()
  const seconds = (): string => `${Math.round((performance.now() - begin) / 1000)} s`
  let shown = 0
  const timer = setInterval(() => {
    void sizeBelow(directory).then((present) => {
      if (present <= shown) return
      shown = present
      print(`  ${megabytes(Math.min(present, bytes))} of ${megabytes(bytes)} after ${seconds()}`)
    })
  }, EVERY_MS)
  return {
    done: () => print(`  downloaded and verified in ${seconds()}`),
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

async function sizeBelow(directory: string): Promise<number> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => [])
  const files = entries
    .filter((entry) => entry.isFile() && !entry.parentPath.includes(LISTS))
    .map((entry) => join(entry.parentPath, entry.name))
  const sizes = await Promise.all(
    files.map((file) =>
      stat(file).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}
