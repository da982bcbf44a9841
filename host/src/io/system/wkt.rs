//! Well-known text of a coordinate reference system (OGC 01-009 and 18-010), as far as its codes need it.

/// The greatest depth of a text that is parsed; real ones have less than 10 levels.
const MAX_DEPTH: usize = 64;

/// The parts of a system that GeoTIFF keys name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// The EPSG code of x and y.
    pub(super) epsg: Option<u16>,
    pub(super) is_geographic: bool,
    /// The EPSG code of the heights.
    pub(super) vertical_epsg: Option<u16>,
    /// The name of the heights.
    pub(super) vertical_name: Option<String>,
}

impl Parts {
    /// Returns the parts of a text; none if it cannot be parsed.
    pub(super) fn of(text: &str) -> Self {
        let mut parts = Self::default();
        if let Some(root) = Node::parse(text) {
            parts.add(&root);
        }
        parts
    }

    fn add(&mut self, node: &Node<'_>) {
        match node.keyword.to_ascii_uppercase().as_str() {
            "PROJCS" | "PROJCRS" | "PROJECTEDCRS" => self.epsg = node.epsg(),
            "GEOGCS" | "GEOGCRS" | "GEOGRAPHICCRS" | "GEODCRS" | "GEODETICCRS" => {
                (self.epsg, self.is_geographic) = (node.epsg(), true);
            }
            "VERT_CS" | "VERTCRS" | "VERTICALCRS" => {
                self.vertical_epsg = node.epsg();
                self.vertical_name = node.values.first().map(|name| (*name).to_owned());
            }
            // A system bound to another by a transformation: the target is not that of the coordinates.
            "COMPD_CS" | "COMPOUNDCRS" | "BOUNDCRS" | "SOURCECRS" => {
                node.children.iter().for_each(|child| self.add(child));
            }
            _ => {}
        }
    }
}

/// An element: `KEYWORD[value, value, CHILD[…], …]`.
#[derive(Debug)]
struct Node<'a> {
    keyword: &'a str,
    /// Texts, without quotes, and numbers.
    values: Vec<&'a str>,
    children: Vec<Self>,
}

impl<'a> Node<'a> {
    /// Parses the first element of a text.
    fn parse(text: &'a str) -> Option<Self> {
        let (mut open, mut rest) = (Vec::<Self>::new(), text);
        loop {
            rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
            if let Some(quoted) = rest.strip_prefix('"') {
                let (value, after) = quoted.split_once('"')?;
                open.last_mut()?.values.push(value);
                rest = after;
            } else if let Some(after) = rest.strip_prefix([']', ')']) {
                let node = open.pop()?;
                let Some(parent) = open.last_mut() else { return Some(node) };
                parent.children.push(node);
                rest = after;
            } else {
                let end = rest.find(['[', '(', ']', ')', ','])?;
                let (word, after) = (rest[..end].trim_end(), &rest[end..]);
                if let Some(inside) = after.strip_prefix(['[', '(']) {
                    if open.len() == MAX_DEPTH {
                        return None;
                    }
                    open.push(Self { keyword: word, values: Vec::new(), children: Vec::new() });
                    rest = inside;
                } else {
                    open.last_mut()?.values.push(word);
                    rest = after;
                }
            }
        }
    }

    /// Returns the EPSG code of this element itself.
    fn epsg(&self) -> Option<u16> {
        let authorities = self.children.iter().filter(|child| {
            ["AUTHORITY", "ID"].iter().any(|keyword| child.keyword.eq_ignore_ascii_case(keyword))
        });
        let code = |authority: &Node<'_>| match authority.values[..] {
            [name, code, ..] if name.eq_ignore_ascii_case("EPSG") => code.parse().ok(),
            _ => None,
        };
        authorities.filter_map(code).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(epsg: Option<u16>, is_geographic: bool, vertical: Option<(Option<u16>, &str)>) -> Parts {
        let (vertical_epsg, vertical_name) =
            (vertical.and_then(|of| of.0), vertical.map(|of| of.1.to_owned()));
        Parts { epsg, is_geographic, vertical_epsg, vertical_name }
    }

    #[test]
    fn codes_of_each_part() {
        let geographic = r#"GEOGCS["NAD83",DATUM["D",SPHEROID["S",6378137,298.25,AUTHORITY["EPSG","7019"]],AUTHORITY["EPSG","6269"]],
            PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433,AUTHORITY["EPSG","9122"]],AUTHORITY["EPSG","4269"]]"#;
        assert_eq!(Parts::of(geographic), parts(Some(4269), true, None));
        let projected = format!(
            r#"PROJCS["NAD83 / UTM zone 10N",{geographic},UNIT["metre",1,AUTHORITY["EPSG","9001"]],AUTHORITY["EPSG","26910"]]"#
        );
        assert_eq!(Parts::of(&projected), parts(Some(26910), false, None));
        let heights = r#"VERT_CS["NAVD88 height",VERT_DATUM["N",2005,AUTHORITY["EPSG","5103"]],AUTHORITY["EPSG","5703"]]"#;
        let compound = format!(r#"COMPD_CS["both",{projected},{heights},AUTHORITY["EPSG","1"]]"#);
        assert_eq!(Parts::of(&compound), parts(Some(26910), false, Some((Some(5703), "NAVD88 height"))));
        // The second version of the format, with numbers as codes, spaces and lower case.
        let second = r#"CompoundCRS[ "both" , PROJCRS["a",BASEGEOGCRS["b",ID["EPSG",4258]], ID["EPSG" , 25833]],
            VERTCRS["local",VDATUM["c"]]]"#;
        assert_eq!(Parts::of(second), parts(Some(25833), false, Some((None, "local"))));
        let bound =
            r#"BOUNDCRS[SOURCECRS[GEOGCRS["a",ID["EPSG",4277]]],TARGETCRS[GEOGCRS["b",ID["EPSG",4326]]]]"#;
        assert_eq!(Parts::of(bound), parts(Some(4277), true, None));
    }

    #[test]
    fn texts_without_codes() {
        // The code of another organization, one that 16 bits cannot hold, and none.
        for code in
            [r#"AUTHORITY["ESRI","102711"]"#, r#"ID["EPSG",102711]"#, r#"UNIT["m",1,ID["EPSG",9001]]"#]
        {
            assert_eq!(Parts::of(&format!(r#"PROJCS["a",{code}]"#)), Parts::default(), "{code}");
        }
        for text in
            ["", "PROJCS", "PROJCS[\"a", "]", "1,2", r#"PROJCS["a",AUTHORITY["EPSG","1"]"#, "LOCAL_CS[\"x\"]"]
        {
            assert_eq!(Parts::of(text), Parts::default(), "{text}");
        }
        assert_eq!(Parts::of(&"A[".repeat(1 << 20)), Parts::default());
    }
}
