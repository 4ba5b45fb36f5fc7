import RedisProtocol

// What a server says of itself (INFO).
extension RESPValue {
    /// The run of the server; empty if it does not say.
    var run: [UInt8] { line("run_id:") }

    /// The history of its data: it begins anew when a replica becomes a master. Empty if it does
    /// not say.
    var history: [UInt8] { line("master_replid:") }

    private func line(_ name: String) -> [UInt8] {
        for line in (text ?? "").split(whereSeparator: \.isNewline) where line.hasPrefix(name) {
            return Array(line.dropFirst(name.count).utf8.prefix(64))
        }
        return []
    }
}
