import { constants, open, readdir, rm } from 'node:fs/promises'
import { watch } from 'node:fs'
import { join } from 'node:path'
import type { ServerPaths } from '../files/paths.ts'

const KEPT_FILES = 5
const TAIL_BYTES = 4096
/** Size above which a file is emptied: a tenant may log a message of 1 GB (RAISE LOG). */
const LARGEST_BYTES = 64 * 1_048_576
const POLL_MS = 10_000
/** Maximum length of a quotation: it fits a condition's message after a sentence. */
const TAIL_CHARS = 800

/** Log files by name, oldest first: their names begin with the time. */
async function logFiles(paths: ServerPaths): Promise<readonly string[]> {
  return (await readdir(paths.log).catch(() => [])).toSorted()
}

interface Tail {
  readonly text: string
  /** Time of the last write. */
  readonly at: number
}

const NOTHING: Tail = { text: '', at: 0 }

/** Reads the last whole lines of a file in a directory of the engine: it follows no link and waits for no pipe. */
async function tailOf(path: string): Promise<Tail> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const found = await file.stat()
    if (!found.isFile()) return NOTHING
    const from = Math.max(0, found.size - TAIL_BYTES)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(TAIL_BYTES), 0, TAIL_BYTES, from)
    const text = buffer.toString('utf8', 0, bytesRead)
    // The rest of a line that begins before cannot be judged: whether it may be shown is written at its beginning.
    return { text: from === 0 ? text : text.slice(text.indexOf('\n') + 1 || text.length), at: found.mtimeMs }
  } catch {
    return NOTHING
  }
}

/** Last output of an engine: what it wrote before it opened its log, then the end of the log, as far as it may be shown. */
export async function lastOutput(paths: ServerPaths, isShowable: (line: string) => boolean): Promise<string> {
  const newest = (await logFiles(paths)).at(-1)
  const early = await tailOf(paths.early)
  const log = newest === undefined ? NOTHING : await tailOf(join(paths.log, newest))
  // A log last written before the early output belongs to a former start.
  const text = log.at < early.at ? early.text : `${early.text}\n${log.text}`
  return quotation(text, isShowable)
}

/** End of a log for a condition's message, without the lines that may not be shown. */
export function quotation(log: string, isShowable: (line: string) => boolean): string {
  const lines = log.split('\n').filter((line) => line !== '' && isShowable(line))
  return lines.join('\n').slice(-TAIL_CHARS)
}

/** Removes all but the newest files: engines limit the size of a file, not the number of files. */
async function pruneLogs(paths: ServerPaths): Promise<void> {
  for (const name of (await logFiles(paths)).slice(0, -KEPT_FILES)) await rm(join(paths.log, name), { force: true })
}

/** Empties the newest file when a single message made it much larger than the file size of the engine. */
async function boundNewest(paths: ServerPaths): Promise<void> {
  const newest = (await logFiles(paths)).at(-1)
  if (newest === undefined) return
  await using file = await open(join(paths.log, newest), constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  const found = await file.stat()
  if (found.isFile() && found.size > LARGEST_BYTES) await file.truncate()
}

/** Bounds the log until the engine has exited or `signal` aborts: prunes when a file appears, and checks the newest file regularly. */
export function keepLogsBounded(paths: ServerPaths, exited: Promise<unknown>, signal: AbortSignal): void {
  const prune = (): void => void pruneLogs(paths).catch(() => undefined)
  const timer = setInterval(() => void boundNewest(paths).catch(() => undefined), POLL_MS).unref()
  const stop = (): void => clearInterval(timer)
  signal.addEventListener('abort', stop, { once: true })
  const watcher = watch(paths.log, { persistent: false, signal }, (event) => {
    if (event === 'rename') prune()
  })
  // At inotify's limit, the log is pruned at the next start only.
  watcher.on('error', () => undefined)
  void exited.then(() => {
    watcher.close()
    stop()
  })
  prune()
}
