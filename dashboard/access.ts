import type { Role } from './api/types.ts'
import type { Place } from './router.ts'

/** Namespace that a page works with, and the caller's role in it. */
export interface Access extends Place {
  readonly role: Role
}
