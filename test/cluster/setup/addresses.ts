import { BlockList } from 'node:net'
import { networkInterfaces } from 'node:os'

/** Returns the address of this machine in the network of a node. @throws Error when it has none */
export function addressBeside(node: string): string {
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const beside = own.find(({ family, address, cidr }) => {
    const network = new BlockList()
    if (family === 'IPv4') network.addSubnet(address, Number(cidr?.split('/')[1] ?? 32))
    return network.check(node)
  })
  if (!beside) throw new Error(`this machine has no address in the network of the node ${node}: its pods cannot reach a CA here`)
  return beside.address
}
