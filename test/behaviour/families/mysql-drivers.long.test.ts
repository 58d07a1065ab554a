import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { partsOf } from '../../../crds/motor.ts'
import type { Tenant } from '../../support/api/tenant.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { LANGUAGE_DRIVERS } from '../../support/families/language-drivers.ts'
import { motorsUnderTest } from '../../support/families/motors-under-test.ts'
import { patient } from '../../support/patience.ts'

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

const MOTORS = motorsUnderTest().filter((motor) => ['mysql', 'mariadb'].includes(partsOf(motor).family))
const ROWS = MOTORS.flatMap((motor) => LANGUAGE_DRIVERS.map((each) => ({ motor, ...each })))

// The first time a driver is downloaded.
test.each(ROWS)(
  '$driver logs in to $motor with the parts of the response',
  { timeout: patient(240_000) },
  async ({ motor, user }) => {
    await using directory = await mkdtempDisposable(join(tmpdir(), 'mooring-drivers-'))
    const instance = await acme.instance({ motor })
    expect(await user(instance, directory.path)).toBe(`${instance.user}\n`)
  },
)
