import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, realpath, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { FAMILIES, type Family, Motor, partsOf } from '../../../../crds/motor.ts'
import { MooringError, hasCode } from '../../../../shared/errors.ts'
import { seriesOf } from '../../series.ts'
import { makeOpenDirectory, publishDirectory } from '../files/open-directory.ts'
import type { EngineUser } from '../spawn/engine-user.ts'
import { type Binaries, candidatesFor, type CompatibleMotors } from './binaries.ts'

/** Server program of the machine that serves a motor, as the option `--engine` names it. */
interface OwnEngine {
  readonly motor: Motor
  /** Absolute path. */
  readonly program: string
}

/** Code of an error about a server program that an administrator named. */
export const ENGINE_UNUSABLE = 'engine_unusable'

const ID = 'own-'
const VERSION_MS = 10_000

/** Path of the server program in an installation. */
const EXECUTABLES: Readonly<Record<Family, string>> = {
  postgresql: 'native/bin/postgres',
  mysql: 'bin/mysqld',
  mariadb: 'bin/mariadbd',
  mongodb: 'bin/mongod',
}

/** Returns the family of a program of the machine by the id of its binaries; undefined for all other ids. */
export function familyOfOwn(id: string): Family | undefined {
  const motor = Motor.safeParse(id.slice(ID.length))
  return id.startsWith(ID) && motor.success ? partsOf(motor.data).family : undefined
}

/**
 * Runs a server program with `--version` and returns the binaries that it stands for.
 * @param user user of the servers, which must be able to execute the program
 * @throws MooringError `engine_unusable` when it does not run, or is no server of the motor's family or version
 */
export async function openOwnEngine(
  { motor, program }: OwnEngine,
  { user, compatible }: { readonly user: EngineUser; readonly compatible: CompatibleMotors },
): Promise<Binaries> {
  const setting = `--engine ${motor}=${program}`
  const real = await realpath(program).catch(() => program)
  const { family } = partsOf(motor)
  const version = versionFor(motor, await outputOf(real, user, setting), {
    compatible,
    unusable: (why) => unusable(setting, why),
  })
  const hasOldTls = family === 'mysql' && (await isTlsOld(real, user))
  return {
    id: `${ID}${motor}`,
    source: 'program',
    program: real,
    family,
    version,
    executable: EXECUTABLES[family],
    nearest: [],
    hasOldTls,
  }
}

/** Option of MySQL 5.7, with the versions that its TLS library has as the default: "tls-version   TLSv1,TLSv1.1". Later series have 1.2. */
const TLS_VERSIONS = /^tls-version\s+(TLS.*)$/m

/** Whether a MySQL server says that it has no TLS 1.2. */
async function isTlsOld(program: string, user: EngineUser): Promise<boolean> {
  const options = { ...user, env: await privateLibraries(program), cwd: '/', timeout: VERSION_MS }
  const answer = await promisify(execFile)(program, ['--no-defaults', '--verbose', '--help'], options).catch(() => undefined)
  const versions = TLS_VERSIONS.exec(answer?.stdout ?? '')?.[1]
  return versions !== undefined && !/TLSv1\.[23]/.test(versions)
}

interface VersionRules {
  readonly compatible: CompatibleMotors
  /** Returns the error for a server that is of no use: `is version 8.4.0, …`. */
  readonly unusable: (why: string) => MooringError
}

/** Returns the version of a server that prints `output` for `--version`. @throws the error of `unusable` when it cannot serve the motor */
export function versionFor(motor: Motor, output: string, { compatible, unusable }: VersionRules): string {
  const [family, version] = [familyIn(output), versionIn(output)]
  const wanted = partsOf(motor)
  if (family !== wanted.family || version === undefined) {
    const found = FAMILIES.find((name) => name === family)
    throw unusable(`is ${found === undefined ? 'no server that Mooring knows' : `a server of ${found}`}`)
  }
  if (!seriesFor(motor).includes(seriesOf(family, version)))
    throw unusable(`is version ${version}, of another series than the motor`)
  if (!isSameVersion(version, wanted.version) && compatible === 'exact')
    throw unusable(`is version ${version}; start with --compatible-motors to serve the motor with it`)
  return version
}

/** Series that may serve a motor: its own, and that of the server by which `npm run engines` serves it. */
function seriesFor(motor: Motor): readonly string[] {
  const { family, version } = partsOf(motor)
  return [version, ...candidatesFor(motor, 'nearest').map((binaries) => binaries.version)].map((each) => seriesOf(family, each))
}

const unusable = (setting: string, why: string, cause?: unknown): MooringError =>
  new MooringError(ENGINE_UNUSABLE, `${setting}: the program ${why}`, { cause })

async function outputOf(program: string, user: EngineUser, setting: string): Promise<string> {
  const env = await privateLibraries(program)
  try {
    const options = { ...user, env, cwd: '/', timeout: VERSION_MS }
    const { stdout } = await promisify(execFile)(program, ['--version'], options)
    return stdout
  } catch (error) {
    if (hasCode(error, 'ENOENT')) throw unusable(setting, 'does not exist', error)
    if (hasCode(error, 'EACCES')) throw unusable(setting, `cannot be executed by user ${user.uid}, as whom servers run`, error)
    const { stderr = '' } = error as { stderr?: string }
    throw unusable(setting, `does not print its version: ${stderr.trim().split('\n').at(-1) ?? ''}`, error)
  }
}

/**
 * Returns the version in what a server program prints for `--version`: "postgres (PostgreSQL) 15.4", "mysqld  Ver 8.0.15 for Linux", "mariadbd  Ver
 * 10.11.19-MariaDB", "db version v6.0.27". Pure.
 * @returns numbers and dots, or undefined
 */
export function versionIn(output: string): string | undefined {
  return /(?:\(PostgreSQL\)|\bVer|\bversion v)\s*(\d+(?:\.\d+)+)/.exec(output)?.[1]
}

/** Returns the family of a server program by its output for `--version`, or undefined. Pure. */
function familyIn(output: string): Family | undefined {
  if (output.includes('(PostgreSQL)')) return 'postgresql'
  if (output.startsWith('db version v')) return 'mongodb'
  if (!/\bVer \d/.test(output)) return undefined
  return /\bVer \S*MariaDB/.test(output) ? 'mariadb' : 'mysql'
}

/** Whether two versions are equal: PostgreSQL names 15.4.0 as 15.4. */
export function isSameVersion(one: string, other: string): boolean {
  const bare = (version: string): string => version.replace(/(\.0)+$/, '')
  return bare(one) === bare(other)
}

/** Directories whose subdirectories belong to the whole system. */
const SYSTEM_PREFIXES: readonly string[] = ['/', '/usr', '/usr/local']
const prefixOf = (program: string): string => dirname(dirname(program))

async function privateLibraries(program: string): Promise<Readonly<Record<string, string>>> {
  const lib = await libraryDirectory(program)
  return lib === undefined ? {} : { LD_LIBRARY_PATH: lib }
}

async function libraryDirectory(program: string): Promise<string | undefined> {
  const prefix = prefixOf(program)
  return SYSTEM_PREFIXES.includes(prefix) ? undefined : firstOf([join(prefix, 'lib')])
}

/** Directories that hold MySQL's or MariaDB's messages and character sets in the layouts of distributions and archives. */
const SHARE = ['share/mysql', 'share/mariadb', 'share/mysql-8.0', 'share']
const PLUGINS = ['plugin', 'lib/mysql/plugin', 'lib64/mysql/plugin', 'lib/plugin', 'lib64/mariadb/plugin']

/** Returns the first of the paths that contains `file`. */
async function firstOf(paths: readonly string[], file = '.'): Promise<string | undefined> {
  for (const path of paths) {
    const exists = await access(join(path, file)).then(
      () => true,
      () => false,
    )
    if (exists) return path
  }
  return undefined
}

/** Returns the links of an installation: absolute paths of the machine by path in the installation. */
async function linksOf({ family, executable, program = '' }: Binaries): Promise<ReadonlyMap<string, string>> {
  const prefix = prefixOf(program)
  const below = (names: readonly string[]): string[] => names.map((name) => join(prefix, name))
  const isMysql = family === 'mysql' || family === 'mariadb'
  const found: Readonly<Record<string, string | undefined>> = {
    [executable]: program,
    'native/bin/initdb': family === 'postgresql' ? join(dirname(program), 'initdb') : undefined,
    share: isMysql ? await firstOf(below(SHARE), 'charsets/Index.xml') : undefined,
    plugin: isMysql ? await firstOf(below(PLUGINS)) : undefined,
    lib: await libraryDirectory(program),
  }
  const links = new Map(Object.entries(found).flatMap(([name, path]) => (path === undefined ? [] : [[name, path] as const])))
  // Paths that a confined server must also see: the targets, and files that it finds relative to its program.
  const outside = [...links.values(), ...(await existing(below(['share', 'lib64'])))].filter((path) => !path.startsWith('/usr/'))
  for (const [index, path] of [...new Set(outside)].entries()) links.set(`shown/${index}`, path)
  return links
}

async function existing(paths: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(paths.map((path) => firstOf([path])))
  return found.filter((path) => path !== undefined)
}

/**
 * Creates the installation of a program of the machine: a directory of links below `parent`, with the layout of other installations.
 * @throws MooringError `unsafe_directory`
 */
export async function linkOwnEngine(binaries: Binaries, parent: string): Promise<string> {
  const links = await linksOf(binaries)
  const hash = createHash('sha256').update(JSON.stringify([...links]))
  const target = join(parent, `.${binaries.id}-${hash.digest('hex').slice(0, 12)}`)
  await publishDirectory(target, async (temporary) => {
    await makeOpenDirectory(temporary)
    for (const [name, path] of links) {
      for (const directory of ancestors(name)) await makeOpenDirectory(join(temporary, directory))
      await symlink(path, join(temporary, name))
    }
  })
  return target
}

/** Directories of a relative path, outermost first. */
function ancestors(name: string): readonly string[] {
  const parent = dirname(name)
  return parent === '.' ? [] : [...ancestors(parent), parent]
}
