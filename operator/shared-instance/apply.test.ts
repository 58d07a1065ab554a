import { expect, test, vi } from 'vitest'
import { databaseServer, claimedStatus, sharedInstance } from '../../test/builders/resources.ts'
import { openTemporaryStore } from '../../test/support/store/temporary-store.ts'
import { type EngineAdmin, LoginState } from '../engines/engine.ts'
import { postgresql } from '../engines/postgresql/postgresql.ts'
import { applyActions } from './apply.ts'
import type { Observation } from './observe.ts'
import { createSuspicions } from './slots.ts'

const instance = sharedInstance({ status: { ...claimedStatus, serverRef: { name: 'server-1' } } })

function seenWith(admin: Pick<EngineAdmin, 'find' | 'reset'>): Observation {
  return {
    observed: {
      ...{
        instance,
        now: 0,
        region: 'served',
        template: 'none',
        oversize: false,
        missing: false,
        inDoubt: false,
        passwordChanged: false,
        extensionsChanged: false,
        secret: undefined,
      },
      full: undefined,
      placement: { found: 'reachable', host: 'h', port: 1 },
    },
    ...{ credentials: undefined, server: databaseServer(), template: undefined, allowedExtensions: [] },
    open: { engine: postgresql, admin: admin as EngineAdmin },
  }
}

test.each([
  { who: 'the leader', mayAct: () => true, resets: 1 },
  { who: 'a process without leader election', mayAct: undefined, resets: 1 },
  { who: 'a leader that was held up past its lease', mayAct: () => false, resets: 0 },
])('an engine gets $resets steps of $who', async ({ mayAct, resets }) => {
  await using place = await openTemporaryStore()
  const reset = vi.fn(() => Promise.resolve())
  const deps = {
    store: place.store,
    limits: { connections: 1 },
    ca: () => '',
    caFile: 'ca.crt',
    suspicions: createSuspicions(),
    events: { failure: () => undefined },
    mayAct,
  }
  const find = () => Promise.resolve({ database: true, login: LoginState.enabled })
  const applied = applyActions(deps, seenWith({ find, reset }), ['reset'])
  if (resets > 0) await applied
  else await expect(applied).rejects.toMatchObject({ code: 'engine_unavailable' })
  expect(reset).toHaveBeenCalledTimes(resets)
})
