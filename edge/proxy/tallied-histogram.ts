import { Histogram, type HistogramConfiguration } from 'prom-client'

type Labels = Readonly<Record<string, string>>

/** One line of the Prometheus format. */
interface Value {
  readonly metricName: string
  readonly labels: Readonly<Record<string, number | string>>
  readonly sharedLabels: Labels
  readonly value: number
}

/** Observations of one combination of labels, in plain numbers. */
export class Tally {
  readonly labels: Labels
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  #sum = 0
  #count = 0

  constructor(labels: Labels, bounds: readonly number[]) {
    this.labels = labels
    this.#bounds = bounds
    this.#counts = bounds.map(() => 0)
  }

  add(value: number): void {
    this.#sum += value
    this.#count++
    let index = 0
    while (index < this.#bounds.length && value > (this.#bounds[index] ?? Infinity)) index++
    // A value above the last bound counts only in sum and count.
    if (index < this.#counts.length) this.#counts[index] = (this.#counts[index] ?? 0) + 1
  }

  /** Returns the values for Prometheus: each bucket includes the buckets below it. */
  values(name: string): Value[] {
    const of = (suffix: string, value: number, labels: Value['labels'] = {}): Value => ({
      ...{ metricName: `${name}_${suffix}`, labels, sharedLabels: this.labels, value },
    })
    let below = 0
    const buckets = this.#bounds.map((le, index) => of('bucket', (below += this.#counts[index] ?? 0), { le }))
    return [...buckets, of('bucket', this.#count, { le: '+Inf' }), of('sum', this.#sum), of('count', this.#count)]
  }
}

interface Configuration extends HistogramConfiguration<string> {
  readonly buckets: number[]
}

/** Histogram that keeps sums in plain numbers: `observe` of prom-client costs more than parsing a request's head. */
export class TalliedHistogram extends Histogram {
  readonly #shown: { readonly name: string; readonly help: string }
  readonly #buckets: readonly number[]
  readonly #tallies: Tally[] = []

  constructor(configuration: Configuration) {
    super(configuration)
    this.#shown = { name: configuration.name, help: configuration.help }
    this.#buckets = configuration.buckets
  }

  /** Creates the tally of one combination of labels; called once for each. */
  tally(labels: Labels): Tally {
    const tally = new Tally(labels, this.#buckets)
    this.#tallies.push(tally)
    return tally
  }

  /** Called by prom-client for each format, although its types do not declare it. */
  async getForPromString(): Promise<object> {
    const values = this.#tallies.flatMap((tally) => tally.values(this.#shown.name))
    return { ...this.#shown, type: 'histogram', aggregator: 'sum', values }
  }
}
