import type { Region } from '../../crds/region.ts'
import type { JsonObject } from './openapi-schemas.ts'

/** Values in the examples of the document; no installation has this region. */
export const EXAMPLE = {
  region: '0b8f5d0e-6a55-4c6e-9a6b-4f6f1d1c0a01',
  regionId: 1,
  motor: 'postgresql-15.4.0',
  organization: 'default',
  namespace: 'default',
} as const

/** Returns the region for the examples: the first one with motors. */
export function regionForExamples(regions: readonly Region[]): Region | undefined {
  return regions.find(({ spec }) => spec.motors.length > 0) ?? regions[0]
}

/** Returns the document with an existing region in its examples, so that they work when pasted. Pure. */
export function withRegion(document: JsonObject, region: Region | undefined): JsonObject {
  if (!region) return document
  const { id, regionId, motors } = region.spec
  const motor = motors.find((served) => served.id === EXAMPLE.motor) ?? motors[0]
  const put = (key: string, value: unknown): unknown => {
    if (value === EXAMPLE.region) return id
    if (key === 'regionId' && value === EXAMPLE.regionId) return regionId
    return key === 'motor' && value === EXAMPLE.motor && motor ? motor.id : value
  }
  return JSON.parse(JSON.stringify(document), put) as JsonObject
}
