import { INSTANCE_LIMITS } from '../../../apiserver/instances/instance-deps.ts'

/** For `node --import`: a request waits two seconds for the operator, in place of the 25 that nobody wants to wait for in a test. */
Object.assign(INSTANCE_LIMITS, { changeMs: 2_000 })
