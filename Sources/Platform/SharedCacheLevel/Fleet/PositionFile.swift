import Files
import SharedCache

/// Where this gateway is in both streams, kept beside its own cache on disk: after a restart it
/// carries out what it has missed, and need not have everything confirmed by its origins.
struct PositionFile {
    struct Positions: Equatable {
        var purges: PurgePosition
        var removed: PurgePosition
    }

    let path: String

    private static let form = "pinfold-fleet-1"
    private static let maximumBytes = 256

    /// `nil` if there is none, or none that can be read.
    func read() -> Positions? {
        guard let bytes = try? OpenFile(path, followsLinks: false).contents(most: Self.maximumBytes)
        else { return nil }
        let words = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace)
        guard words.count == 4, words[0] == Self.form, let epoch = UInt64(words[1]),
            let purges = PurgePosition(epoch: epoch, entry: Array(words[2].utf8)),
            let removed = PurgePosition(epoch: epoch, entry: Array(words[3].utf8))
        else { return nil }
        return Positions(purges: purges, removed: removed)
    }

    /// A failure is no harm: from an earlier position, more is carried out again.
    func write(_ positions: Positions) {
        let entries = [positions.purges, positions.removed].map {
            String(decoding: $0.entry, as: UTF8.self)
        }
        let text = "\(Self.form) \(positions.purges.epoch) \(entries.joined(separator: " "))\n"
        guard let file = try? UnfinishedFile(Array(text.utf8), for: path, mode: 0o600) else {
            return
        }
        do throws(FileError) { try file.rename() } catch { file.discard() }
    }
}
