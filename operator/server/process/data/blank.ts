import { lstat, mkdir, readdir, readFile, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Logger } from 'pino'
import { MooringError, hasCode } from '../../../../shared/errors.ts'
import type { AdminCredentials } from '../../runtime.ts'
import type { Binaries } from '../programs/binaries.ts'
import { syncDirectory, writeDurably, namelessFile } from '../files/durable-files.ts'
import type { EngineUser } from '../spawn/engine-user.ts'
import { makeEmpty, type ServerPaths } from '../files/paths.ts'
import { at, type Cloneable, type Command } from '../programs/program.ts'
import { runToEnd, openDirectory, type Program } from '../spawn/spawn-engine.ts'
import { tryLock } from '../spawn/serving.ts'

/*
 * A blank is the newly created data directory of one version of an engine. Copying it takes a tenth of the time of creating one. No engine
 * ever runs on it, so its contents are trusted.
 */

export interface BlankDeps {
  /** Files of the server. */
  readonly paths: ServerPaths
  readonly blank: ServerPaths
  readonly binaries: Pick<Binaries, 'id'>
  readonly cloneable: Cloneable
  readonly installation: string
  readonly user: EngineUser
  readonly logger: Logger
}

/** Command that copies between two inherited directories, links as links. Modes are the source's, whatever the umask. */
const copy = (from: string, to: string): Command => ({
  file: 'bin/cp',
  args: ['-r', '--preserve=mode', '--reflink=auto', `${from}/.`, to],
})
/** Listing of a blank's files, stored beside its data. */
const listingFile = (blank: ServerPaths): string => join(blank.root, 'listing')

/**
 * Stores a copy of the unfinished data directory as the blank, unless there is one. A missing blank costs only time, so a failure is logged
 * and its partial copy removed. Never rejects.
 */
export async function keepBlank(deps: BlankDeps, signal: AbortSignal): Promise<void> {
  const { blank, logger } = deps
  try {
    await mkdir(blank.root, { recursive: true, mode: 0o700 })
    // One lock for all paths of the directory.
    await using lock = await tryLock(await realpath(blank.root))
    // Another process creates the blank, or has created it.
    if (!lock || (await isWhole(blank))) return
    await make(deps, signal)
    await dropFormer(blank, deps.binaries.id)
  } catch (err) {
    if (!signal.aborted) logger.warn({ err }, 'no blank data directory could be stored: the next server takes longer to create')
    await drop(deps)
  }
}

async function make(deps: BlankDeps, signal: AbortSignal): Promise<void> {
  const { paths, blank, cloneable, installation, user } = deps
  await rm(blank.data, { recursive: true, force: true })
  await makeEmpty(blank.unfinished, user)
  await using target = await openDirectory(blank.unfinished)
  {
    await using source = await openDirectory(paths.unfinished)
    const command = copy(at.data, at.other)
    await must({ installation: '/', command, user, inherit: [source, target], output: blank.early }, signal)
  }
  await must({ installation, command: cloneable.flush, user, inherit: [target], output: blank.early }, signal)
  await writeDurably(listingFile(blank), (await listingOf(blank.unfinished)) ?? '', { mode: 0o600 })
  await rename(blank.unfinished, blank.data)
  await syncDirectory(blank.root)
}

/** Removes blanks of the package's former versions. */
async function dropFormer({ root }: ServerPaths, name: string): Promise<void> {
  const former = (await readdir(dirname(root))).filter((other) => other.startsWith(`${name}-`) && other !== basename(root))
  for (const other of former) await rm(join(dirname(root), other), { recursive: true, force: true })
}

/**
 * Creates the unfinished data directory from the blank, durable and with this admin's password.
 * @returns false when there is no blank, or it is damaged and now removed: the caller then creates the data directory
 * @throws the signal's reason when it aborts
 */
export async function copyBlank(deps: BlankDeps, admin: AdminCredentials, signal: AbortSignal): Promise<boolean> {
  const { blank, logger } = deps
  try {
    if ((await listingOf(blank.data)) === undefined) return false
    if (!(await isWhole(blank))) throw new MooringError('blank_damaged', 'the blank was changed')
    await copyAndOwn(deps, admin, signal)
    return true
  } catch (err) {
    signal.throwIfAborted()
    logger.warn({ err }, 'the copy of the blank data directory failed: data directory and blank are created anew')
    await drop(deps)
    return false
  }
}

async function copyAndOwn(deps: BlankDeps, admin: AdminCredentials, signal: AbortSignal): Promise<void> {
  const { paths, blank, cloneable, installation, user } = deps
  await makeEmpty(paths.unfinished, user)
  await using target = await openDirectory(paths.unfinished)
  const own = { installation, user, inherit: [target], output: paths.early }
  {
    await using source = await openDirectory(blank.data)
    await must({ ...own, installation: '/', command: copy(at.other, at.data), inherit: [target, source] }, signal)
  }
  if (cloneable.setPassword) {
    const { command, input } = await cloneable.setPassword(admin)
    await using statement = await namelessFile(join(paths.root, 'statement'), { text: input, user })
    await must({ ...own, command, input: statement }, signal)
  }
  await must({ ...own, command: cloneable.flush }, signal)
}

/** @throws MooringError `blank_failed` */
async function must(program: Program, signal: AbortSignal): Promise<void> {
  if (await runToEnd(program, signal)) return
  const { file, args } = program.command
  throw new MooringError('blank_failed', `${[file, ...args].join(' ')} failed`)
}

async function isWhole(blank: ServerPaths): Promise<boolean> {
  const [noted, found] = await Promise.all([readFile(listingFile(blank), 'utf8').catch(() => ''), listingOf(blank.data)])
  return noted === found
}

/** Number and size of the files in a directory, which shows whether a file was removed. Undefined when there is no directory. */
async function listingOf(directory: string): Promise<string | undefined> {
  try {
    const entries = await readdir(directory, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
    const sizes = await Promise.all(files.map(async (file) => (await lstat(file)).size))
    return `${entries.length} entries, ${sizes.reduce((sum, size) => sum + size, 0)} bytes\n`
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/** Removes a blank, complete or not. */
async function drop({ blank, logger }: BlankDeps): Promise<void> {
  try {
    await rm(blank.root, { recursive: true, force: true, maxRetries: 3 })
  } catch (err) {
    logger.warn({ err }, 'a blank data directory could not be removed')
  }
}
