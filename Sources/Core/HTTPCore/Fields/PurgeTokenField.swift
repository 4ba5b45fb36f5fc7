/// X-Purge-Token: the token of a request that purges, for listeners on which Authorization says who
/// is asking. It is the name that configurations of Varnish and Fastly commonly use.
extension RequestHead {
    private static let purgeToken = Array("x-purge-token".utf8)
    private static let purgeTokenSketch = FieldNameSketch([purgeToken])

    /// The values of all lines of the field.
    public func purgeTokens(in bytes: Span<UInt8>) -> [ByteRange] {
        guard fields.unknownNames.intersects(Self.purgeTokenSketch) else { return [] }
        var values: [ByteRange] = []
        for index in 0..<fields.count where fields[index].id == .other {
            let name = bytes.extracting(fields[index].name.indices)
            if name.equals(lowercase: Self.purgeToken.span) { values.append(fields[index].value) }
        }
        return values
    }

    /// Makes the field hop-by-hop: a gateway that takes the token shows it to nobody, and no
    /// response depends on it. The same for a name with `_` for `-`.
    public mutating func endPurgeTokens(in bytes: Span<UInt8>) {
        guard fields.unknownNames.intersects(Self.purgeTokenSketch) else { return }
        for index in 0..<fields.count where fields[index].id == .other {
            let name = bytes.extracting(fields[index].name.indices)
            if Self.isAlias(name, of: Self.purgeToken) { fields.nominate(index) }
        }
    }
}
