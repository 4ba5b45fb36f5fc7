import HTTPCore
import PinfoldMetrics

/// The names in a table, escaped for JSON strings.
struct EscapedLabels {
    /// By slot: which of its names it holds, and that name.
    private let slots: [(use: UInt32, text: [UInt8])]

    init(_ table: LabelTable) {
        slots = table.names.map { ($0.use, Self.escaped($0.label)) }
    }

    private static func escaped(_ label: String) -> [UInt8] {
        let label = Array(label.utf8)
        // An escaped byte takes at most six.
        var buffer = LineBuffer(capacity: 6 * label.count)
        label.withUnsafeBytes { JSONText.append($0, to: &buffer) }
        return Array(buffer.bytes)
    }

    /// Appends the name for an index; `other` if its slot has been reused for another name.
    func append(_ index: LabelIndex, to output: inout LineBuffer) {
        let slot = Int(index.slot)
        if slot < slots.count, slots[slot].use == index.use {
            output.append(slots[slot].text)
        } else {
            output.append("other")
        }
    }
}
