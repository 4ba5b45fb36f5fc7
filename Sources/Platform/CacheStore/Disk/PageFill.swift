/// Bytes that rows take in a b-tree of SQLite's whose rows are in the order of their ids (SQLite
/// file format, section 1.6).
enum RowSize {
    /// Bytes of an empty leaf page.
    static let page = Schema.pageBytes - 8
    /// The payload of a row above which part of it is in pages of its own.
    private static let largestLocal = Schema.pageBytes - 35
    private static let smallestLocal = (Schema.pageBytes - 12) * 32 / 255 - 23
    private static let overflowBytes = Schema.pageBytes - 4

    /// What a row takes of its leaf page, with the pointer to it, and how many pages of its own.
    struct Cell {
        let bytes: Int
        let overflowPages: Int
    }

    /// - Parameter payload: bytes of its columns, with their types.
    static func cell(payload: Int, id: Int64) -> Cell {
        let fixed = varint(UInt64(payload)) + varint(UInt64(bitPattern: id)) + 2
        guard payload > largestLocal else { return Cell(bytes: fixed + payload, overflowPages: 0) }
        var local = smallestLocal + (payload - smallestLocal) % overflowBytes
        if local > largestLocal { local = smallestLocal }
        return Cell(
            bytes: fixed + local + 4,
            overflowPages: (payload - local + overflowBytes - 1) / overflowBytes)
    }

    /// A row of a checksum and these blobs.
    static func cell(blobs: [Int], id: Int64) -> Cell {
        var payload = 3 + 8
        for bytes in blobs { payload += varint(UInt64(12 + 2 * bytes)) + bytes }
        return cell(payload: payload, id: id)
    }

    private static func varint(_ value: UInt64) -> Int {
        min(9, max(1, (64 - value.leadingZeroBitCount + 6) / 7))
    }
}

/// Knows how much of the last page of the table `content` is free, so that a row can be divided
/// where the page ends: otherwise a body of a little more than half a page would waste the rest.
///
/// It is a prediction: SQLite does not say which rows are on which page. If it is wrong, space is
/// wasted and nothing else.
struct PageFill {
    /// Bytes of a body that are worth a row of their own.
    static let smallestPart = 256
    /// Rows on one of the last pages are removed: their neighbours may be merged.
    private static let neighbours = 4

    /// Bytes left in the last page; `nil` if that is unknown.
    private(set) var left: Int?
    /// The largest id of a row so far. A row with a smaller id is not on the last page.
    private var lastID: Int64
    /// The first id on each of the last pages.
    private var starts: [Int64] = []

    init(lastID: Int64) { self.lastID = lastID }

    /// How many bytes of a body go into the row of its record; the others go into a second row. All
    /// if it is not divided.
    func bytesInFirst(record: Int, body: Int, id: Int64) -> Int {
        guard let left, id > lastID, body >= 2 * Self.smallestPart,
            RowSize.cell(blobs: [record, body], id: id).bytes > left
        else { return body }
        // Four bytes for lengths that take more bytes than those of an empty body.
        let room = left - RowSize.cell(blobs: [record, 0], id: id).bytes - 4
        let part = min(room, body - Self.smallestPart)
        return part >= Self.smallestPart ? part : body
    }

    /// A row was inserted.
    /// - Parameter newPages: by how many pages the database has grown, if that was looked at.
    mutating func inserted(_ id: Int64, _ cell: RowSize.Cell, newPages: Int64?) {
        guard id > lastID else { return forget() }
        lastID = id
        if let left, cell.bytes <= left {
            self.left = left - cell.bytes
        } else if left != nil || newPages == Int64(cell.overflowPages) + 1 {
            begin(id, cell)
        }
    }

    private mutating func begin(_ id: Int64, _ cell: RowSize.Cell) {
        left = RowSize.page - cell.bytes
        if starts.count == Self.neighbours { starts.removeFirst() }
        starts.append(id)
    }

    /// Rows up to this id were removed.
    mutating func removed(_ id: Int64) {
        if let first = starts.first, id >= first { forget() }
    }

    /// Nothing is known any more.
    mutating func forget() {
        left = nil
        starts = []
    }
}
