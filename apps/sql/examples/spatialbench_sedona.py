"""Runs the queries of the example spatialbench by SedonaDB (pip install "apache-sedona[db]" pyarrow), on the same Parquet files.

Usage: python spatialbench_sedona.py DIR [--runs 3] [--queries q8,q12] [--unordered] [--polygons]. Each query prints one line of JSON
with the best times of its runs, on the clock and of the CPU. Buildings are the centers of their polygons' bounding boxes, as kauri-sql
has no polygons; --polygons takes the polygons, as SpatialBench does. The checksum adds a hash of two columns over all rows, so that it is
equal to the example's for equal answers. --points ROWS instead of a folder times a kNN join and a distance join of uniform points in
memory, as the example timing does.
"""

import argparse
import json
import math
import time

import numpy as np
import pyarrow as pa
import sedona.db
import sedonadb

Q8 = """
SELECT b.b_buildingkey, b.b_name, count(*) AS nearby_pickup_count
FROM trip t JOIN building b ON ST_DWithin(ST_GeomFromWKB(t.t_pickuploc), b.geometry, 0.0045)
GROUP BY b.b_buildingkey, b.b_name ORDER BY nearby_pickup_count DESC, b.b_buildingkey
"""
Q12 = """
WITH pickup AS (SELECT t_tripkey, t_pickuploc, ST_GeomFromWKB(t_pickuploc) AS geometry FROM trip)
SELECT t.t_tripkey, t.t_pickuploc, b.b_buildingkey, b.b_name AS building_name,
       ST_Distance(t.geometry, b.geometry) AS distance_to_building
FROM pickup t JOIN building b ON ST_KNN(t.geometry, b.geometry, 5, FALSE)
"""
Q12_ORDER = "ORDER BY distance_to_building, b.b_buildingkey"
CENTER = "ST_Point((ST_XMin(polygon) + ST_XMax(polygon)) / 2, (ST_YMin(polygon) + ST_YMax(polygon)) / 2)"


def checksum(batch, columns):
    """Adds a hash of two columns of integers over the rows of a batch, modulo 2^64."""
    a, b = (batch.column(name).to_numpy().astype(np.uint64) for name in columns)
    hashes = (a * np.uint64(0x9E3779B97F4A7C15)) ^ (b * np.uint64(0xC2B2AE3D27D4EB4F))
    return int(hashes.sum(dtype=np.uint64))


def run(session, name, sql, columns, runs):
    """Prints the best time of a query and its answer's number of rows and checksum."""
    best, best_cpu = math.inf, math.inf
    for _ in range(runs):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        rows = total = 0
        for batch in pa.RecordBatchReader.from_stream(session.sql(sql)):
            rows += batch.num_rows
            total += checksum(batch, columns) if columns else 0
        best = min(best, time.perf_counter() - begin)
        best_cpu = min(best_cpu, time.process_time() - begin_cpu)
    line = {"query": name, "engine": f"sedonadb {sedonadb.__version__}", "seconds": best, "cpu_seconds": best_cpu}
    print(json.dumps(line | {"rows": rows, "checksum": f"{total % 2**64:016x}"}), flush=True)


def spatialbench(session, args):
    """Times Q8 and Q12."""
    limit = f" WHERE t_tripkey <= {args.trips}" if args.trips else ""
    session.read_parquet(f"{args.data}/trip.parquet").to_view("trip_file")
    session.sql(f"SELECT t_tripkey, t_pickuploc FROM trip_file{limit}").to_view("trip")
    session.read_parquet(f"{args.data}/building.parquet").to_view("building_file")
    geometry = "polygon" if args.polygons else CENTER
    session.sql(
        f"SELECT b_buildingkey, b_name, {geometry} AS geometry FROM "
        "(SELECT b_buildingkey, b_name, ST_GeomFromWKB(b_boundary) AS polygon FROM building_file)"
    ).to_memtable().to_view("building")
    if "q8" in args.queries:
        run(session, "q8", Q8, ["b_buildingkey", "nearby_pickup_count"], args.runs)
    if "q12" in args.queries:
        q12 = Q12 if args.unordered else Q12 + Q12_ORDER
        run(session, "q12", q12, ["t_tripkey", "b_buildingkey"], args.runs)


def uniform_points(session, args):
    """Times joins of uniform points in the unit square: 5 nearest, and pairs within the distance that has 3 points on average."""
    for name, seed in [("a", 1), ("b", 2)]:
        points = np.random.default_rng(seed).random((args.points, 2))
        table = pa.table({"id": np.arange(args.points), "x": points[:, 0], "y": points[:, 1]})
        session.create_data_frame(table).to_view(f"{name}_columns")
        session.sql(f"SELECT id, ST_Point(x, y) AS geom FROM {name}_columns").to_memtable().to_view(name)
    radius = math.sqrt(3 / (math.pi * args.points))
    for name, condition in [
        ("5 nearest", "ST_KNN(a.geom, b.geom, 5, FALSE)"),
        ("pairs within a distance", f"ST_DWithin(a.geom, b.geom, {radius})"),
    ]:
        sql = f"SELECT a.id AS id, b.id AS id_right FROM a JOIN b ON {condition}"
        run(session, name, sql, None, args.runs)


def main():
    parser = argparse.ArgumentParser(description="Times SpatialBench's queries Q8 and Q12 by SedonaDB.")
    parser.add_argument("data", nargs="?", help="the folder of trip.parquet and building.parquet")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--queries", type=lambda text: text.split(","), default=["q8", "q12"])
    parser.add_argument("--trips", type=int, help="take only the trips with keys up to this number")
    parser.add_argument("--unordered", action="store_true", help="leave out the ORDER BY of Q12")
    parser.add_argument("--polygons", action="store_true", help="take polygons instead of centers of boxes")
    parser.add_argument("--points", type=int, metavar="ROWS", help="join uniform points instead")
    args = parser.parse_args()
    if (args.data is None) == (args.points is None):
        parser.error("give a folder or --points")
    (uniform_points if args.points else spatialbench)(sedona.db.connect(), args)


if __name__ == "__main__":
    main()
