/**
 * The SQL of HA groups: ha_config, function_route and the three functions that a PL/Proxy node asks, in the state
 * database; xdual on each node. Every text can be run again; a route that was switched stays switched.
 */
import { quoteLiteral, quoteName } from '../pg/sql-names.js'
import { type HaPlan, hostIdOf, keywordForm, nodeAddress, nodesOf } from './ha-plan.js'

export interface FunctionRoute {
  readonly functionName: string
  readonly groupId: number
}

/** The role of the probers, made where it is missing; its password is set where one is configured. */
export function roleSql(plan: HaPlan): string {
  const name = quoteName(plan.user)
  const password = plan.password === undefined ? '' : ` password ${quoteLiteral(plan.password)}`
  return `do $pgshard$ begin
  if not exists (select from pg_catalog.pg_roles where rolname = ${quoteLiteral(plan.user)}) then
    create role ${name} login;
  end if;
end $pgshard$;
${password === '' ? '' : `alter role ${name} login${password};\n`}`
}

const tablesSql = `create table if not exists public.ha_config (
  ha_groupid int primary key,
  primary_ip text,
  standby_ip text,
  primary_hostid int,
  standby_hostid int,
  current_hostid int,
  primary_hearttime timestamp,
  standby_hearttime timestamp
);
create table if not exists public.function_route (
  funcname text primary key,
  ha_groupid int
);
create table if not exists public.ha_host (
  hostid int primary key,
  conninfo text not null
);
create table if not exists public.ha_cluster (
  cluster_name text primary key,
  version int not null,
  statement_timeout text not null
);
revoke all on public.ha_host from public;
`

/** PL/Proxy runs these as the calling user, who must not need rights on our tables. */
const functionsSql = `create schema if not exists plproxy;
create or replace function plproxy.get_cluster_version(cluster_name text) returns int
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare found_version int;
begin
  select c.version into found_version from public.ha_cluster c where c.cluster_name = $1;
  if found_version is null then raise exception 'no such cluster: %', $1; end if;
  return found_version;
end $body$;
create or replace function plproxy.get_cluster_config(in cluster_name text, out key text, out val text) returns setof record
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
begin
  return query select 'statement_timeout'::text, c.statement_timeout from public.ha_cluster c where c.cluster_name = $1;
  if (select (count(*) & (count(*) - 1)) <> 0 from public.ha_host) then
    return query select 'modular_mapping'::text, '1'::text;
  end if;
end $body$;
create or replace function plproxy.get_cluster_partitions(cluster_name text) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
begin
  if not exists (select from public.ha_cluster c where c.cluster_name = $1) then raise exception 'Unknown cluster'; end if;
  return query select h.conninfo from public.ha_host h order by h.hostid;
end $body$;
create or replace function public.plp_route_by_funcname(key text) returns int
language sql stable security definer set search_path = pg_catalog, pg_temp as $body$
  select c.current_hostid from public.ha_config c join public.function_route r using (ha_groupid) where r.funcname = $1
$body$;
`

/** Rows for the groups: addresses and host ids follow the configuration, the current route stays. */
function rowsSql(plan: HaPlan, routes: readonly FunctionRoute[]): string {
  const groups = plan.groups.map((group) => {
    const [primary, standby] = [hostIdOf(group, 'primary'), hostIdOf(group, 'standby')]
    return `insert into public.ha_config values (${group.id}, ${quoteLiteral(nodeAddress(group.primary))}, ${quoteLiteral(nodeAddress(group.standby))}, ${primary}, ${standby}, ${primary}, timezone('UTC', now()), timezone('UTC', now()))
  on conflict (ha_groupid) do update set primary_ip = excluded.primary_ip, standby_ip = excluded.standby_ip, primary_hostid = excluded.primary_hostid, standby_hostid = excluded.standby_hostid;`
  })
  const hosts = nodesOf(plan).map(
    ({ hostId, conninfo }) =>
      `insert into public.ha_host values (${hostId}, ${quoteLiteral(keywordForm(conninfo))})
  on conflict (hostid) do update set conninfo = excluded.conninfo;`,
  )
  const functions = routes.map(
    ({ functionName, groupId }) =>
      `insert into public.function_route values (${quoteLiteral(functionName)}, ${groupId})
  on conflict (funcname) do update set ha_groupid = excluded.ha_groupid;`,
  )
  const cluster = quoteLiteral(plan.cluster)
  // The version grows when a node's address changed: PL/Proxy asks for the partitions again then.
  return `create temporary table pg_temp.ha_before on commit drop as select hostid, conninfo from public.ha_host;
delete from public.ha_config where ha_groupid > ${plan.groups.length};
delete from public.ha_host where hostid >= ${plan.groups.length * 2};
${[...groups, ...hosts, ...functions].join('\n')}
insert into public.ha_cluster values (${cluster}, 1, ${quoteLiteral(String(plan.statementTimeout))})
  on conflict (cluster_name) do update set statement_timeout = excluded.statement_timeout,
    version = ha_cluster.version + case when exists (
      (select hostid, conninfo from public.ha_host except select hostid, conninfo from pg_temp.ha_before)
      union all (select hostid, conninfo from pg_temp.ha_before except select hostid, conninfo from public.ha_host)) then 1 else 0 end;
`
}

/** Everything in the state database, for one transaction. */
export function stateSql(plan: HaPlan, routes: readonly FunctionRoute[]): string {
  return `${roleSql(plan)}${tablesSql}${functionsSql}${rowsSql(plan, routes)}grant all on public.ha_config, public.function_route to ${quoteName(plan.user)};
`
}

/** Everything on a node, for one transaction. */
export function nodeSql(plan: HaPlan): string {
  return `${roleSql(plan)}create table if not exists public.xdual (x timestamp);
insert into public.xdual select now() where not exists (select from public.xdual);
grant all on public.xdual to ${quoteName(plan.user)};
`
}

export const dropStateSql = `drop function if exists public.plp_route_by_funcname(text);
drop function if exists plproxy.get_cluster_version(text);
drop function if exists plproxy.get_cluster_config(text);
drop function if exists plproxy.get_cluster_partitions(text);
drop table if exists public.ha_config, public.function_route, public.ha_host, public.ha_cluster;
`

export const dropNodeSql = 'drop table if exists public.xdual;\n'
