//! Spatial joins and scans of LAS files as bytes, in which machines exchange plans.

use crate::exec::{OutputIndex, SpatialJoinExec};
use crate::functions;
use crate::geometry::Measure;
use crate::partition;
use crate::predicate::{BoxRelation, Radius, SpatialPredicate, check_k};
use datafusion::arrow::datatypes::Schema;
use datafusion::common::internal_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{
    DefaultPhysicalExtensionCodec, PhysicalExtensionCodec, PhysicalPlanDecodeContext,
    PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf::PhysicalExprNode;
use prost::Message;
use std::sync::Arc;
#[cfg(feature = "las")]
use {
    crate::las::LasSource,
    datafusion::datasource::physical_plan::FileScanConfig,
    datafusion::datasource::source::DataSourceExec,
    datafusion_proto::physical_plan::from_proto::{
        parse_protobuf_file_scan_config, parse_table_schema_from_proto,
    },
    datafusion_proto::physical_plan::to_proto::serialize_file_scan_config,
    datafusion_proto::protobuf::FileScanExecConf,
};

/// The first bytes of a join.
const JOIN: &[u8] = b"kauri spatial join\0";
/// The first bytes of a scan of LAS files.
#[cfg(feature = "las")]
const LAS: &[u8] = b"kauri las\0";

/// Encodes spatial joins and scans of LAS files, and leaves all else to another codec.
#[derive(Debug)]
pub struct SpatialCodec {
    others: Arc<dyn PhysicalExtensionCodec>,
}

impl Default for SpatialCodec {
    fn default() -> Self {
        Self::new(Arc::new(DefaultPhysicalExtensionCodec {}))
    }
}

impl SpatialCodec {
    /// Creates a codec that leaves all but spatial joins and scans of LAS files to `others`.
    pub fn new(others: Arc<dyn PhysicalExtensionCodec>) -> Self {
        Self { others }
    }
}

impl PhysicalExtensionCodec for SpatialCodec {
    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        #[cfg(feature = "las")]
        if let Some(config) = las_scan(&node) {
            buf.extend_from_slice(LAS);
            buf.extend(serialize_file_scan_config(config, self, converter)?.encode_to_vec());
            return Ok(());
        }
        let Some(join) = node.downcast_ref::<SpatialJoinExec>() else {
            return self.others.try_encode(node, buf, converter);
        };
        let exprs = |exprs: &[Arc<dyn PhysicalExpr>]| {
            exprs.iter().map(|expr| converter.physical_expr_to_proto(expr, self)).collect::<Result<Vec<_>>>()
        };
        let message = JoinMessage {
            predicate: PredicateMessage::new(join.predicate()),
            geometry: exprs(join.geometry())?,
            scores: exprs(join.scores().map_or(&[], |scores| scores))?,
            parts: exprs(join.parts().map_or(&[], |parts| parts))?,
            output: join.output().iter().map(OutputMessage::new).collect(),
        };
        buf.extend_from_slice(JOIN);
        buf.extend(message.encode_to_vec());
        Ok(())
    }

    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let decode = PhysicalPlanDecodeContext::new(context, self);
        #[cfg(feature = "las")]
        if let Some(config) = buf.strip_prefix(LAS) {
            let config = FileScanExecConf::decode(config).map_err(|_| invalid())?;
            let source = LasSource::new(parse_table_schema_from_proto(&config)?);
            let config = parse_protobuf_file_scan_config(&config, &decode, converter, Arc::new(source))?;
            return Ok(DataSourceExec::from_data_source(config));
        }
        let Some(message) = buf.strip_prefix(JOIN) else {
            return self.others.try_decode(buf, inputs, context, converter);
        };
        let message =
            JoinMessage::decode(message).map_err(|error| internal_datafusion_err!("{INVALID}: {error}"))?;
        let [left, right] = inputs else { return Err(invalid()) };
        let schemas = [left.schema(), right.schema()];
        let expr = |expr: &PhysicalExprNode, schema: &Schema| {
            converter.proto_to_physical_expr(expr, schema, &decode)
        };
        let pair = |exprs: &[PhysicalExprNode]| match exprs {
            [] => Ok(None),
            [left, right] => Ok(Some([expr(left, &schemas[0])?, expr(right, &schemas[1])?])),
            _ => Err(invalid()),
        };
        let join = SpatialJoinExec::try_new(
            [Arc::clone(left), Arc::clone(right)],
            message.predicate.predicate()?,
            pair(&message.geometry)?.ok_or_else(invalid)?,
            pair(&message.scores)?,
            pair(&message.parts)?,
            message.output.iter().map(OutputMessage::index).collect::<Result<_>>()?,
        )?;
        Ok(Arc::new(join))
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buf: &mut Vec<u8>) -> Result<()> {
        self.others.try_encode_udf(node, buf)
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> Result<Arc<ScalarUDF>> {
        match functions::all()
            .into_iter()
            .chain(partition::functions())
            .find(|function| function.name() == name)
        {
            Some(function) => Ok(Arc::new(function)),
            None => self.others.try_decode_udf(name, buf),
        }
    }
}

/// Returns the scan if a node is one of LAS files.
#[cfg(feature = "las")]
fn las_scan(node: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    node.downcast_ref::<DataSourceExec>()?.downcast_to_file_source::<LasSource>().map(|(config, _)| config)
}

const INVALID: &str = "the plan of a spatial join cannot be decoded";

fn invalid() -> datafusion::error::DataFusionError {
    internal_datafusion_err!("{INVALID}")
}

#[derive(Clone, PartialEq, Message)]
struct JoinMessage {
    #[prost(message, required, tag = "1")]
    predicate: PredicateMessage,
    #[prost(message, repeated, tag = "2")]
    geometry: Vec<PhysicalExprNode>,
    #[prost(message, repeated, tag = "3")]
    scores: Vec<PhysicalExprNode>,
    #[prost(message, repeated, tag = "4")]
    parts: Vec<PhysicalExprNode>,
    #[prost(message, repeated, tag = "5")]
    output: Vec<OutputMessage>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct OutputMessage {
    /// 0 left, 1 right, 2 distance, 3 score.
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(uint64, tag = "2")]
    column: u64,
}

impl OutputMessage {
    fn new(index: &OutputIndex) -> Self {
        let (kind, column) = match *index {
            OutputIndex::Left(column) => (0, column),
            OutputIndex::Right(column) => (1, column),
            OutputIndex::Distance => (2, 0),
            OutputIndex::Score => (3, 0),
        };
        Self { kind, column: column as u64 }
    }

    fn index(&self) -> Result<OutputIndex> {
        let column = self.column as usize;
        Ok(match self.kind {
            0 => OutputIndex::Left(column),
            1 => OutputIndex::Right(column),
            2 => OutputIndex::Distance,
            3 => OutputIndex::Score,
            _ => return Err(invalid()),
        })
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
struct PredicateMessage {
    /// 0 within, 1 kNN, 2 top-k; boxes: 3 intersects, 4 contains, 5 within.
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(int64, tag = "2")]
    k: i64,
    #[prost(double, optional, tag = "3")]
    radius: Option<f64>,
    #[prost(bool, tag = "4")]
    is_lon_lat: bool,
}

impl PredicateMessage {
    fn new(predicate: &SpatialPredicate) -> Self {
        let (kind, k, radius) = match *predicate {
            SpatialPredicate::Within { radius, .. } => (0, 0, Some(radius)),
            SpatialPredicate::Knn { k, within, .. } => (1, k, within),
            SpatialPredicate::TopK { k, radius, .. } => (2, k, Some(radius)),
            SpatialPredicate::Boxes(BoxRelation::Intersects) => (3, 0, None),
            SpatialPredicate::Boxes(BoxRelation::Contains) => (4, 0, None),
            SpatialPredicate::Boxes(BoxRelation::Within(radius)) => (5, 0, Some(radius)),
        };
        let is_lon_lat = predicate.measure() == Some(Measure::LonLat);
        Self { kind, k: k as i64, radius: radius.map(Radius::get), is_lon_lat }
    }

    fn predicate(&self) -> Result<SpatialPredicate> {
        let measure = if self.is_lon_lat { Measure::LonLat } else { Measure::Planar };
        let within = self.radius.map(|radius| Radius::new(radius, "a join")).transpose();
        let within = within.map_err(|error| error.in_plan())?;
        let radius = || within.ok_or_else(invalid);
        let k = || check_k(self.k, "a join").map_err(|error| error.in_plan());
        Ok(match self.kind {
            0 => SpatialPredicate::Within { radius: radius()?, measure },
            1 => SpatialPredicate::Knn { k: k()?, within, measure },
            2 => SpatialPredicate::TopK { k: k()?, radius: radius()?, measure },
            3 => SpatialPredicate::Boxes(BoxRelation::Intersects),
            4 => SpatialPredicate::Boxes(BoxRelation::Contains),
            5 => SpatialPredicate::Boxes(BoxRelation::Within(radius()?)),
            _ => return Err(invalid()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicates_are_decoded_as_they_were() {
        let radius = Radius::new(2.5, "a test").unwrap();
        let (k, measure) = (3, Measure::LonLat);
        let predicates = [
            SpatialPredicate::Within { radius, measure },
            SpatialPredicate::Knn { k, within: None, measure: Measure::Planar },
            SpatialPredicate::Knn { k, within: Some(radius), measure },
            SpatialPredicate::TopK { k, radius: Radius::new(f64::INFINITY, "a test").unwrap(), measure },
            SpatialPredicate::Boxes(BoxRelation::Intersects),
            SpatialPredicate::Boxes(BoxRelation::Contains),
            SpatialPredicate::Boxes(BoxRelation::Within(radius)),
        ];
        for predicate in predicates {
            let bytes = PredicateMessage::new(&predicate).encode_to_vec();
            let decoded = PredicateMessage::decode(&bytes[..]).unwrap().predicate().unwrap();
            assert_eq!(decoded, predicate);
        }
    }

    #[test]
    fn other_bytes_are_errors() {
        let valid = PredicateMessage { kind: 1, k: 2, radius: None, is_lon_lat: false };
        for message in [
            PredicateMessage { kind: 9, ..valid },
            PredicateMessage { k: 0, ..valid },
            PredicateMessage { kind: 0, ..valid },
            PredicateMessage { radius: Some(-1.0), ..valid },
        ] {
            assert!(message.predicate().is_err(), "{message:?}");
        }
        assert!(OutputMessage { kind: 4, column: 0 }.index().is_err());
        let decode = |bytes: &[u8]| {
            let converter = datafusion_proto::physical_plan::DefaultPhysicalProtoConverter {};
            SpatialCodec::default().try_decode(bytes, &[], &TaskContext::default(), &converter)
        };
        assert!(decode(b"another plan").is_err());
        assert!(decode(&[JOIN, &[255; 9]].concat()).is_err());
        assert!(decode(JOIN).is_err());
    }
}
