import { INSTANCE_LIMITS } from '../../../apiserver/instances/instance-deps.ts'

/** Preloaded by `node --import`: a request waits two seconds for the operator instead of 25 or 30, to keep tests short. */
Object.assign(INSTANCE_LIMITS, { changeMs: 2_000, deleteMs: 2_000 })
