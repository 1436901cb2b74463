#include "network/network-private.h"

/* One unit of load for one picosecond, in bytes: 2^-32 of the share, 1/256 byte/s, 1e-12 s. */
#define BYTES_PER_LOAD_PS (0x1p-40 * 1e-12)

static double
to_double (PodU128 value)
{
  return (double) (uint64_t) (value >> 64) * 0x1p64 + (double) (uint64_t) value;
}

double
pod_link_meter_bytes (const PodLinkMeter *meter, int64_t now_ps)
{
  double since_ps = (double) (now_ps - meter->since_ps);

  return meter->bytes + to_double (meter->load) * since_ps * BYTES_PER_LOAD_PS;
}

/* Several changes of one instant find the same bytes in any order; the load is whole, so it comes
 * back to 0. */
void
pod_link_meter_change (PodLinkMeter *meter, int64_t now_ps, uint64_t share_q32, uint64_t old_rate,
                       uint64_t new_rate)
{
  if (now_ps != meter->since_ps)
    {
      if (meter->load != 0)
        meter->bytes = pod_link_meter_bytes (meter, now_ps);
      meter->since_ps = now_ps;
    }
  meter->load += (PodU128) share_q32 * new_rate - (PodU128) share_q32 * old_rate;
}

void
pod_link_meter_correct (PodLinkMeter *meter, uint64_t share_q32, PodI128 work)
{
  double size
      = to_double ((PodU128) (work < 0 ? -work : work)) * (double) share_q32 * BYTES_PER_LOAD_PS;

  meter->bytes -= work < 0 ? -size : size;
}

double
pod_link_meter_rate (const PodLinkMeter *meter)
{
  return to_double (meter->load) * 0x1p-40;
}
