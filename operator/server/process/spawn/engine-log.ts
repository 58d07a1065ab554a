import { constants, open, readdir, rm } from 'node:fs/promises'
import { watch } from 'node:fs'
import { join } from 'node:path'
import type { ServerPaths } from '../files/paths.ts'

const KEPT_FILES = 5
const TAIL_BYTES = 4096
/** A tenant may log a message of 1 GB (RAISE LOG). */
const LARGEST_BYTES = 64 * 1_048_576
const LOOK_MS = 10_000
/** Fits a condition's message with room for a sentence before it. */
const TAIL_CHARS = 800

/** Log files by name, oldest first: their names begin with the time. */
async function logFiles(paths: ServerPaths): Promise<readonly string[]> {
  return (await readdir(paths.log).catch(() => [])).toSorted()
}

interface Tail {
  readonly text: string
  /** When it was written to last. */
  readonly at: number
}

const NOTHING: Tail = { text: '', at: 0 }

/** The end of a file that the engine may have put there: no link is followed, no pipe waited for. */
async function tailOf(path: string): Promise<Tail> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const found = await file.stat()
    if (!found.isFile()) return NOTHING
    const from = Math.max(0, found.size - TAIL_BYTES)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(TAIL_BYTES), 0, TAIL_BYTES, from)
    return { text: buffer.toString('utf8', 0, bytesRead), at: found.mtimeMs }
  } catch {
    return NOTHING
  }
}

/** An engine's last words: what it wrote before it logged by itself, then the end of its log, as far as they may be shown. */
export async function lastWords(paths: ServerPaths, isShowable: (line: string) => boolean): Promise<string> {
  const newest = (await logFiles(paths)).at(-1)
  const early = await tailOf(paths.early)
  const log = newest === undefined ? NOTHING : await tailOf(join(paths.log, newest))
  // A log that ends before the early words begin is of a former start.
  const text = log.at < early.at ? early.text : `${early.text}\n${log.text}`
  const lines = text.split('\n').filter((line) => line !== '' && isShowable(line))
  return lines.join('\n').slice(-TAIL_CHARS)
}

/** Removes all but the newest files: engines bound the size of one, not how many there are. */
export async function pruneLogs(paths: ServerPaths): Promise<void> {
  for (const name of (await logFiles(paths)).slice(0, -KEPT_FILES)) await rm(join(paths.log, name), { force: true })
}

/** Empties the newest file when one message has made it much larger than the size at which the engine begins another. */
async function boundNewest(paths: ServerPaths): Promise<void> {
  const newest = (await logFiles(paths)).at(-1)
  if (newest === undefined) return
  await using file = await open(join(paths.log, newest), constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  const found = await file.stat()
  if (found.isFile() && found.size > LARGEST_BYTES) await file.truncate()
}

/** Bounds the log until the engine has exited or `signal` aborts: prunes whenever a new file appears, and looks at the newest now and then. */
export function keepLogsBounded(paths: ServerPaths, exited: Promise<unknown>, signal: AbortSignal): void {
  const prune = (): void => void pruneLogs(paths).catch(() => undefined)
  const timer = setInterval(() => void boundNewest(paths).catch(() => undefined), LOOK_MS).unref()
  const stop = (): void => clearInterval(timer)
  signal.addEventListener('abort', stop, { once: true })
  const watcher = watch(paths.log, { persistent: false, signal }, (event) => {
    if (event === 'rename') prune()
  })
  // inotify's limit is reached: pruned at the next start then.
  watcher.on('error', () => undefined)
  void exited.then(() => {
    watcher.close()
    stop()
  })
  prune()
}
