import HTTPCore
import PinfoldConfiguration

/// The steps of a route's rules for the field lines of a head, of a request or a response.
struct HeaderSteps: Sendable {
    private let removed: [HeadName]
    private let renamed: [(from: HeadName, to: HeadName)]
    private let set: [(name: HeadName, value: [UInt8])]
    private let added: [(name: HeadName, value: [UInt8])]
    private let defaults: [(name: HeadName, value: [UInt8])]

    init(_ rules: HeaderRules) {
        removed = FieldRule.names(rules.remove)
        renamed = FieldRule.renames(rules.rename)
        set = FieldRule.lines(rules.set)
        added = FieldRule.lines(rules.add)
        defaults = FieldRule.lines(rules.defaults)
    }

    /// Whether no head is ever changed.
    var isEmpty: Bool {
        removed.isEmpty && renamed.isEmpty && set.isEmpty && added.isEmpty && defaults.isEmpty
    }

    /// Performs the steps, in their order.
    ///
    /// - Parameters:
    ///   - releases: whether Connection may nominate names that are written here, which are then
    ///     removed from it (``HeadLines/release(_:in:)``).
    ///   - isUpdate: whether the head updates one that its receiver has stored: a 304 need not
    ///     repeat the fields of the response that it confirms (RFC 9110 §15.4.5), but those that it
    ///     has replace the stored ones (RFC 9111 §3.2). A field that is missing here may be there,
    ///     so that nothing is added to it.
    func change(
        _ lines: inout HeadLines, releases: Bool, isUpdate: Bool = false, in bytes: Span<UInt8>
    ) {
        for name in removed { lines.remove(name, in: bytes) }
        for (from, to) in renamed {
            for index in lines.lines.indices
            where !lines.lines[index].isNominated
                && lines.isNamed(from, at: index, in: bytes)
            {
                lines.rename(at: index, to: to.written)
            }
            if releases, lines.contains(to, in: bytes) {
                lines.release(to, in: bytes)
            }
        }
        for (name, value) in set {
            if releases { lines.release(name, in: bytes) }
            lines.set(name, value, in: bytes)
        }
        // Found before any is added: a name may have several values.
        let missing = isUpdate ? added.filter { !lines.contains($0.name, in: bytes) } : []
        for (name, value) in added where !missing.contains(where: { $0.name == name }) {
            if releases { lines.release(name, in: bytes) }
            lines.append(name.written, value)
        }
        guard !isUpdate else { return }
        for (name, value) in defaults where !lines.contains(name, in: bytes) {
            if releases { lines.release(name, in: bytes) }
            lines.append(name.written, value)
        }
    }
}
