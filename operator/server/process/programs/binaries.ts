import { access, constants, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { z } from 'zod'
import { isLoopback } from '../../../../crds/formats/address-list.ts'
import { type Family, type Motor, MOTORS, partsOf } from '../../../../crds/motor.ts'
import { PROGRAMS } from './programs.ts'

/** Binaries of one version of an engine. */
export interface Binaries {
  /** Name of the dependency in package.json, or of the directory in the cache. It is the beginning of no other. */
  readonly id: string
  /**
   * `package`: an npm package. `cache`: a directory that `npm run engines` fills. `program`: a server program of the machine
   * (docs/engines.md).
   */
  readonly source: 'package' | 'cache' | 'program'
  /** Absolute path of the program, for the source `program`. */
  readonly program?: string
  readonly family: Family
  /** Version of the engine; the package's version starts with it. */
  readonly version: string
  /** Path of the server program in the installation. */
  readonly executable: string
  /** Motors without binaries of their exact version for which these are the nearest. */
  readonly nearest: readonly Motor[]
  /** Whether the server has no TLS 1.2, which current clients require: it is served on loopback only. */
  readonly hasOldTls?: boolean
}

/** Available binaries. Another engine is another entry here, and its program in programs.ts. */
export const BINARIES: readonly Binaries[] = [
  {
    id: 'postgresql-15',
    source: 'package',
    family: 'postgresql',
    version: '15.4.0',
    executable: 'native/bin/postgres',
    nearest: [],
  },
  {
    id: 'postgresql-14',
    source: 'package',
    family: 'postgresql',
    version: '14.5.0',
    executable: 'native/bin/postgres',
    nearest: ['postgresql-14.4.0'],
  },
  {
    id: 'zonky-postgresql-14.4.0',
    source: 'cache',
    family: 'postgresql',
    version: '14.4.0',
    executable: 'native/bin/postgres',
    nearest: [],
  },
  {
    id: 'mysql-5.7.22',
    source: 'cache',
    family: 'mysql',
    version: '5.7.22',
    executable: 'bin/mysqld',
    nearest: ['mysql-5.7.38'],
    // Built with yaSSL.
    hasOldTls: true,
  },
  {
    id: 'mysql-8.0.15',
    source: 'cache',
    family: 'mysql',
    version: '8.0.15',
    executable: 'bin/mysqld',
    nearest: ['mysql-8.0.29'],
  },
  {
    id: 'mariadb-10.11.19',
    source: 'cache',
    family: 'mariadb',
    version: '10.11.19',
    executable: 'bin/mariadbd',
    nearest: ['mariadb-10.7.4'],
  },
  {
    id: 'mongodb-5.0.32',
    source: 'cache',
    family: 'mongodb',
    version: '5.0.32',
    executable: 'bin/mongod',
    nearest: ['mongodb-5.0.9'],
  },
  {
    id: 'mongodb-6.0.27',
    source: 'cache',
    family: 'mongodb',
    version: '6.0.27',
    executable: 'bin/mongod',
    nearest: ['mongodb-7.0.2'],
  },
]

/** `exact`: a motor is served by its exact version only. `nearest`: otherwise by the nearest version that Mooring installs. */
export type CompatibleMotors = 'exact' | 'nearest'

/** Server programs of the machine, by the motor that each serves (own-engine.ts). */
export type OwnEngines = ReadonlyMap<Motor, Binaries>

/** Returns the binaries that may serve a motor, whether installed or not, the best first. */
export function candidatesFor(motor: Motor, compatible: CompatibleMotors, own?: OwnEngines): readonly Binaries[] {
  const given = own?.get(motor)
  if (given) return [given]
  const { family, version } = partsOf(motor)
  const exact = BINARIES.filter((binaries) => binaries.family === family && binaries.version === version)
  return compatible === 'exact' ? exact : [...exact, ...BINARIES.filter((binaries) => binaries.nearest.includes(motor))]
}

/** Returns the binaries that serve a motor: the first candidate that is installed, else the first one; undefined when there are none. */
export async function binariesFor(
  motor: Motor,
  compatible: CompatibleMotors,
  { cache, own }: InstalledEngines = {},
): Promise<Binaries | undefined> {
  const candidates = candidatesFor(motor, compatible, own)
  if (candidates.length < 2) return candidates[0]
  for (const binaries of candidates) if (await directoryOf(binaries, cache)) return binaries
  return candidates[0]
}

type Environment = Readonly<Partial<Record<'MOORING_ENGINES_CACHE' | 'XDG_CACHE_HOME', string>>>

/** Directory of the cache: MOORING_ENGINES_CACHE, or a directory in the user's cache. An empty variable counts as unset. */
export function enginesCache({ MOORING_ENGINES_CACHE: own = '', XDG_CACHE_HOME: xdg = '' }: Environment = process.env): string {
  if (own !== '') return resolve(own)
  return join(xdg === '' ? join(homedir(), '.cache') : xdg, 'mooring/engines')
}

/** Absolute directory of installed binaries, or undefined when they are not installed or have another version. */
export function directoryOf(binaries: Binaries, cache: string = enginesCache()): Promise<string | undefined> {
  if (binaries.program !== undefined) return directoryWith(dirname(binaries.program), basename(binaries.program))
  // A directory of the cache is complete or absent.
  return binaries.source === 'package' ? packageDirectory(binaries) : directoryWith(join(cache, binaries.id), binaries.executable)
}

const Manifest = z.object({ version: z.string() })
const require = createRequire(import.meta.url)

async function packageDirectory({ id, version: wanted }: Binaries): Promise<string | undefined> {
  try {
    const manifest = require.resolve(join(id, 'package.json'))
    const { version } = Manifest.parse(JSON.parse(await readFile(manifest, 'utf8')))
    return version.startsWith(wanted) ? dirname(manifest) : undefined
  } catch {
    return undefined
  }
}

function directoryWith(directory: string, executable: string): Promise<string | undefined> {
  return access(join(directory, executable), constants.X_OK).then(
    () => directory,
    () => undefined,
  )
}

export interface InstalledEngines {
  /** Directory of the cache; that of the environment when absent. */
  readonly cache?: string | undefined
  readonly own?: OwnEngines | undefined
  /** Address that the servers listen on. Absent: loopback. */
  readonly listen?: string | undefined
}

/** Whether the TLS of binaries is too old for clients at an address. */
export const isTlsTooOld = ({ hasOldTls = false }: Binaries, listen = '127.0.0.1'): boolean => hasOldTls && !isLoopback(listen)

/** Sentence about binaries whose TLS is too old for the address that servers listen on: the reason, and what to do. */
export const oldTlsAdvice = (motor: Motor, { version }: Binaries): string =>
  `its server ${version} has no TLS 1.2, which clients require off loopback: start with --listen 127.0.0.1, with --engine ${motor}=docker, which serves on loopback, or with --engine ${motor}=<program> of a server that has TLS 1.2`

/** Returns the motors that installed binaries can serve, each with the version that would run. */
export async function servableMotors(
  compatible: CompatibleMotors,
  { cache, own, listen }: InstalledEngines = {},
): Promise<ReadonlyMap<Motor, { readonly version: string }>> {
  const found = new Map<Motor, { readonly version: string }>()
  for (const motor of MOTORS) {
    const binaries = await binariesFor(motor, compatible, { cache, own })
    if (binaries && PROGRAMS[binaries.family] && !isTlsTooOld(binaries, listen) && (await directoryOf(binaries, cache)))
      found.set(motor, { version: binaries.version })
  }
  return found
}
