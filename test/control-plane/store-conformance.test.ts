import { afterAll, beforeAll } from 'vitest'
import { conformance } from '../conformance/store.ts'
import type { Store } from '../../store/port.ts'
import { type ControlPlane, startControlPlane } from './support/control-plane.ts'

let plane: ControlPlane
let store: Store
beforeAll(async () => {
  plane = await startControlPlane()
  store = plane.store()
})
afterAll(() => plane[Symbol.asyncDispose]())

conformance('KubernetesStore', () =>
  Promise.resolve({
    store,
    compact: () => plane.compact(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }),
)
