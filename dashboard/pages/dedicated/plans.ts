import type { CreateMetadata, Plan, Price } from '../../api/types.ts'

/** `1 CPU, 512 MiB memory, 10 GiB storage` */
export function sizeOf({ cpu, memoryMiB, storageGiB }: Plan): string {
  const memory = memoryMiB % 1_024 === 0 ? `${memoryMiB / 1_024} GiB` : `${memoryMiB} MiB`
  return `${cpu} ${cpu === 1 ? 'CPU' : 'CPUs'}, ${memory} memory, ${storageGiB} GiB storage`
}

/** `12.50 EUR / month`, or `free`. The amount is shown as the API gives it: a decimal string. */
export const priceOf = ({ amount, currency, unit }: Price): string =>
  /^[0.]+$/.test(amount) ? 'free' : `${amount} ${currency} / ${unit}`

/** Returns a sentence about what is billed in addition to a plan; undefined when nothing is. */
export function alsoBilled({ billableItems }: Pick<CreateMetadata, 'billableItems'>): string | undefined {
  const others = billableItems.filter(({ kind }) => kind !== 'plan')
  return others.length === 0
    ? undefined
    : `Also billed: ${others.map(({ name, price }) => `${name}, ${priceOf(price)}`).join('; ')}.`
}

/** Returns the plans that allow an engine, the smallest first. */
export const plansFor = ({ plans }: Pick<CreateMetadata, 'plans'>, engine: string): readonly Plan[] =>
  plans
    .filter(({ engines }) => engines.some((each) => each === engine))
    .toSorted((a, b) => a.storageGiB - b.storageGiB || a.memoryMiB - b.memoryMiB || a.cpu - b.cpu)

/** Part of the metadata that decides which engines are offered. */
interface Offers extends Pick<CreateMetadata, 'regions' | 'plans'> {
  readonly engines: readonly Pick<CreateMetadata['engines'][number], 'id' | 'supported'>[]
}

/** Returns the supported engines that a region runs and a plan allows. */
export const enginesOf = (offers: Offers): readonly string[] =>
  offers.engines
    .filter(({ supported, id }) => supported && regionsFor(offers, id).length > 0 && plansFor(offers, id).length > 0)
    .map(({ id }) => id)

/** Returns the regions that run an engine. */
export const regionsFor = ({ regions }: Pick<CreateMetadata, 'regions'>, engine: string): CreateMetadata['regions'] =>
  regions.filter(({ motors }) => motors.some(({ id, supported }) => supported && id === engine))
