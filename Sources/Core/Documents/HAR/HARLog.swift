/// The text of an HTTP Archive (HAR 1.2) around its entries, which are JSON.
package enum HARLog {
    /// What is in front of the first entry.
    package static func beginning(version: String) -> String {
        "{\"log\":{\"version\":\"1.2\","
            + "\"creator\":{\"name\":\"Pinfold\",\"version\":\"\(version)\"},"
            + "\"pages\":[],\"entries\":["
    }

    /// What is in front of each entry.
    /// - Parameter isFirst: whether there is none before it.
    package static func separator(isFirst: Bool) -> String { isFirst ? "\n" : ",\n" }

    /// What is behind the last entry.
    /// - Parameter dropped: how many exchanges are not in it because they came too fast.
    package static func ending(dropped: Int64 = 0) -> String {
        "\n]" + (dropped > 0 ? ",\"_dropped\":\(dropped)" : "") + "}}\n"
    }
}
