"""Keeps the readings of weather stations, and proves that none is missing.

holdfast run examples/stations.py
holdfast run examples/stations.py --option station=hill
"""

from holdfast import Option, Page, Pipeline, Planned, Record, Resume, Start, Unproven, Verified

#: In place of a service that lists the readings of a station.
READINGS = {"harbour": [21, 22, 24], "hill": [17, 19]}


class Stations(Pipeline):
    columns = ["station", "number", "degrees"]
    options = [Option("station", choices=list(READINGS), help="Only this one.")]
    schema = [
        "CREATE TABLE IF NOT EXISTS station_readings (station text, number integer,"
        " degrees integer, PRIMARY KEY (station, number))",
    ]

    async def plan(self, tx, request, streams, now):
        if "follow" in request:
            return Planned()  # nothing to add when a job has ended
        wanted = [request["station"]] if "station" in request else list(READINGS)
        known = {stream.source: stream for stream in await streams(wanted)}
        orders, answer = [], []
        for station in wanted:
            stream = known.get(station)
            if stream is None or stream.job_state == "DONE":
                orders.append(Start(station, "full", f"readings of {station}"))
                decision = "start"
            elif stream.live:
                decision = "already running"
            else:
                orders.append(Resume(stream.job_id))
                decision = "resume"
            answer.append({"station": station, "decision": decision})
        return Planned(orders, answer)

    async def discover(self, source, cursor, ctx):
        readings = enumerate(READINGS[source], start=1)
        records = [Record({"station": source, "number": n, "degrees": d}) for n, d in readings]
        yield Page(records, end=True)

    async def process(self, row, ctx):
        return row

    async def save(self, tx, settled):
        await tx.execute_many(
            "INSERT INTO station_readings (station, number, degrees)"
            " VALUES (:station, :number, :degrees) ON CONFLICT DO NOTHING",
            [item.result for item in settled if item.status == "DONE"],
        )

    async def conclude(self, tx, job, stream):
        count = "SELECT count(*) FROM station_readings WHERE station = :station"
        stored = (await tx.fetch(count, {"station": stream.source}))[0][0]
        expected = len(READINGS[stream.source])
        if stored < expected:
            return Unproven(f"{stored} of {expected} readings are stored", cursor=None)
        return Verified(expected, stored, proven=True)
