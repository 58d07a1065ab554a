import { createHash } from 'node:crypto'
import type { Region } from '../../crds/region.ts'
import { type JsonObject, regionForExamples, withRegion } from './openapi-schemas.ts'

/** The OpenAPI document as it is sent. */
export interface ServedDocument {
  readonly text: string
  /** Strong entity tag of the text (RFC 9110, section 8.8.3). */
  readonly etag: string
}

/**
 * Creates a function that returns the document with an existing region in its examples. `/openapi.json` is open to every caller, and the document
 * is large: its text is made anew only when another region, or another motor of it, is in the examples.
 */
export function createServedDocument(document: JsonObject, regions: () => readonly Region[]): () => ServedDocument {
  let last: (ServedDocument & { readonly examples: string }) | undefined

  return function servedDocument() {
    const region = regionForExamples(regions())
    const { id, regionId, motors = [] } = region?.spec ?? {}
    const examples = JSON.stringify([id, regionId, motors.map((motor) => motor.id)])
    if (last?.examples !== examples) {
      const text = JSON.stringify(withRegion(document, region))
      last = { examples, text, etag: `"${createHash('sha256').update(text).digest('base64url')}"` }
    }
    return last
  }
}
