export interface Station {
  readonly demandUs: number
  readonly servers: number
}
export interface Costs {
  readonly poolerUs: number
  readonly serverUs: number
  readonly generatorUs: number
}
export interface Machines {
  readonly poolerCores: number
  readonly serverCores: number
  readonly generatorCores: number
  readonly delayUs: number
}
export function closedNetwork(
  stations: readonly Station[],
  delayUs: number,
  clients: number,
): number
export function oneMachine(
  costs: Costs,
  of: { readonly cores: number; readonly workers: number; readonly clients: number },
): number
export function threeMachines(
  costs: Costs,
  machines: Machines,
  of: { readonly workers: number; readonly clients: number },
): number
export function busyCores(poolerUs: number, tps: number): number
