import type { Logger } from 'pino'
import { type Motor, MOTORS } from '../crds/motor.ts'
import { createDockerClient } from '../operator/server/docker/docker-client.ts'
import { type DockerEngine, openDockerEngine } from '../operator/server/docker/docker-engine.ts'
import type { DockerEngines } from '../operator/server/docker/docker-runtime.ts'
import { engineUser } from '../operator/server/process/spawn/engine-user.ts'
import {
  type Binaries,
  binariesFor,
  candidatesFor,
  type CompatibleMotors,
  directoryOf,
  type InstalledEngines,
  isTlsTooOld,
  oldTlsAdvice,
  type OwnEngines,
} from '../operator/server/process/programs/binaries.ts'
import { openOwnEngine } from '../operator/server/process/programs/own-engine.ts'
import { MooringError } from '../shared/errors.ts'
import type { Settings } from './settings.ts'

/** Servers that `--engine` names, by motor. */
export interface GivenEngines {
  readonly own: OwnEngines
  readonly docker: DockerEngines
}

/**
 * Asks the servers of `--engine` for their versions, after a download of images that are missing.
 * @throws MooringError `engine_unusable`, `no_engine_user`; the signal's reason when it aborts
 */
export async function openGivenEngines(
  { engine, compatibleMotors }: Pick<Settings, 'engine' | 'compatibleMotors'>,
  { logger, signal }: { readonly logger: Logger; readonly signal: AbortSignal },
): Promise<GivenEngines> {
  const compatible = compatibleMotors ? 'nearest' : 'exact'
  const own = new Map<Motor, Binaries>()
  const docker = new Map<Motor, DockerEngine>()
  const client = createDockerClient()
  for (const { motor, source } of engine) {
    if ('image' in source) {
      docker.set(motor, await openDockerEngine({ motor, ...source }, { docker: client, compatible, logger, signal }))
    } else {
      own.set(motor, await openOwnEngine({ motor, ...source }, { user: await engineUser(), compatible }))
    }
  }
  return { own, docker }
}

/** Explains how this installation comes to serve a motor. */
export type MotorAdvice = (motor: Motor) => string | undefined

/** Reads which engines are installed, once. Each advice names the commands to run. */
export async function createMotorAdvice(compatible: CompatibleMotors, installed: InstalledEngines): Promise<MotorAdvice> {
  const advice = new Map<Motor, string>()
  for (const motor of MOTORS) {
    const [exact] = candidatesFor(motor, 'exact', installed.own)
    const binaries = await binariesFor(motor, 'nearest', installed)
    if (!binaries) continue
    if (isTlsTooOld(binaries, installed.listen)) {
      advice.set(motor, oldTlsAdvice(motor, binaries))
      continue
    }
    const isInstalled = (await directoryOf(binaries, installed.cache)) !== undefined
    advice.set(motor, adviceFor({ motor, binaries, isInstalled, isNear: binaries !== exact, canBeAdded: exact !== undefined }))
  }
  return (motor) => advice.get(motor)

  function adviceFor({ motor, binaries, isInstalled, isNear, canBeAdded }: Advised): string {
    const start = isNear ? 'npm start -- --compatible-motors' : 'npm start'
    const isAllowed = !isNear || compatible === 'nearest'
    const near = `only version ${binaries.version} is installed, which ${start} serves`
    if (isInstalled && !isAllowed)
      return canBeAdded ? `${near}; for the exact version, run npm run engines -- add ${motor}, then npm start again` : near
    if (isInstalled) return 'its server is installed, and the next npm start serves it'
    return `its server was not installed at this start: run npm run engines -- add ${motor}, then ${isAllowed ? 'npm start again' : start}`
  }
}

interface Advised {
  readonly motor: Motor
  readonly binaries: Binaries
  readonly isInstalled: boolean
  /** Whether the binaries have another version than the motor. */
  readonly isNear: boolean
  /** Whether `npm run engines` installs the exact version. */
  readonly canBeAdded: boolean
}

/** Code of an error about a setting that only a start detects. */
export const NOT_SERVED = 'motor_not_served'

/** Checks the motors of `--warm`, except the default one. @throws MooringError `motor_not_served` */
export function checkWarm(warm: readonly Motor[], { served, advice }: { served: readonly Motor[]; advice: MotorAdvice }): void {
  const missing = warm.find((motor) => !served.includes(motor) && motor !== 'postgresql-15.4.0')
  if (missing === undefined) return
  throw new MooringError(
    NOT_SERVED,
    `--warm ${missing}: this installation does not serve the motor (${advice(missing) ?? 'no server is known'})`,
  )
}
