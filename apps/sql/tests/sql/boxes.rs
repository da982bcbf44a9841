//! Joins of boxes.

use crate::data::{Random, SHAPES, assert_rows, oracle, rows, session};
use datafusion::prelude::SessionContext;

/// Adds a table of boxes: id, xmin, ymin, xmax, ymax. Some corners are null.
async fn add_boxes(session: &SessionContext, name: &str, seed: u64, rows: usize) {
    let mut random = Random::new(seed);
    let mut row = |id: usize| {
        let [x, y, w, h] = [40, 40, 6, 6].map(|end| random.below(end));
        let x_text = if random.below(12) == 0 { "NULL".to_string() } else { format!("{x}.0") };
        format!("({id}, {x_text}, {y}.0, {}.0, {}.0)", x + w, y + h)
    };
    let values = (0..rows).map(&mut row).collect::<Vec<_>>().join(", ");
    let sql = format!(
        "CREATE TABLE {name} AS SELECT column1 AS id, column2 AS xmin, column3 AS ymin, column4 AS xmax, column5 AS ymax FROM (VALUES {values})"
    );
    session.sql(&sql).await.unwrap().collect().await.unwrap();
}

fn made(alias: &str) -> String {
    format!("ST_MakeBox({alias}.xmin, {alias}.ymin, {alias}.xmax, {alias}.ymax)")
}

#[tokio::test]
async fn predicates_equal_comparisons() {
    for (partitions, batch_size) in SHAPES {
        let session = session(partitions, batch_size);
        add_boxes(&session, "a", 21, 90).await;
        add_boxes(&session, "b", 22, 70).await;
        let intersects = "SELECT a.id, b.id FROM a, b WHERE a.xmin <= b.xmax AND b.xmin <= a.xmax AND a.ymin <= b.ymax AND b.ymin <= a.ymax";
        let contains = "SELECT a.id, b.id FROM a, b WHERE a.xmin <= b.xmin AND b.xmax <= a.xmax AND a.ymin <= b.ymin AND b.ymax <= a.ymax";
        let (a, b) = (made("a"), made("b"));
        for (sql, expected) in [
            (format!("SELECT a.id, b.id FROM a JOIN b ON ST_Intersects({a}, {b})"), intersects),
            (format!("SELECT a.id, b.id FROM b JOIN a ON ST_Intersects({a}, {b})"), intersects),
            (format!("SELECT a.id, b.id FROM a JOIN b ON ST_Contains({a}, {b})"), contains),
            (format!("SELECT a.id, b.id FROM b, a WHERE ST_Contains({a}, {b})"), contains),
            ("SELECT id, id_right FROM box_join(a, b, 'intersects')".into(), intersects),
            ("SELECT id, id_right FROM box_join(a, b, 'contains')".into(), contains),
        ] {
            assert_rows(&session, &sql, expected).await;
        }
        let within = "SELECT a.id, b.id FROM a, b WHERE power(greatest(a.xmin - b.xmax, b.xmin - a.xmax, 0.0), 2) \
                      + power(greatest(a.ymin - b.ymax, b.ymin - a.ymax, 0.0), 2) <= 9 AND a.xmin IS NOT NULL AND b.xmin IS NOT NULL";
        assert_rows(&session, "SELECT id, id_right FROM box_join(a, b, 'within', 3)", within).await;
        let scalar = format!("SELECT a.id, b.id FROM a, b WHERE ST_Intersects({a}, {b})");
        assert_eq!(oracle(&session, &scalar).await, rows(&session, intersects).await.unwrap());
    }
}
