import ArgumentParser
import Documents

/// `pinfold cache sql`: asks what is stored in SQL.
struct CacheSQL: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sql",
        abstract: "Ask what is stored, with one SELECT of the view cache.",
        discussion: """
            The columns of the view are url, host, method, status, type, bytes, hits, stored, \
            expires and last_used (seconds since 1970), trust, tags (separated by spaces), vary \
            (names of fields) and tiers. The command copies them from the running gateway into a \
            temporary database of its own: nothing in the gateway waits for the query, and the \
            query cannot change or open anything. Exits with 1 if the query is refused, fails or \
            takes too long, and with 2 if the gateway cannot be asked, does not answer, or cannot \
            read all that is stored: nothing is answered from a part of it.
            """)

    @Argument(help: ArgumentHelp("One SELECT.", valueName: "select"))
    var query: String

    @Option(help: ArgumentHelp("What is printed: table, csv or json.", valueName: "format"))
    var format = TableFormat.table

    @Option(
        help: ArgumentHelp(
            "Copy only what is stored for these hosts: example.com, *.example.com or "
                + "**.example.com, perhaps with :PORT.", valueName: "host"))
    var host: String?

    @Flag(help: "Copy only what is in memory, whatever the state of the disk.")
    var memory = false

    @Option(help: ArgumentHelp("How long the query may take.", valueName: "seconds"))
    var limitTime = 10.0

    @Flag(name: .shortAndLong, help: "Show no progress.")
    var silent = false

    @OptionGroup var options: AdministrationOptions

    func validate() throws {
        guard limitTime > 0, limitTime <= 3600 else {
            throw ValidationError("--limit-time must be greater than 0 and at most 3600 seconds")
        }
    }

    func run() throws {
        let pages = EntryPages(
            gateway: try options.gatewayOrExit(), host: host, inMemoryOnly: memory)
        do {
            let database = try EntryDatabase()
            let progress = CountProgress("responses copied", isOn: !silent)
            try pages.visitAll { value in
                try database.add(EntryRow(value))
                progress.add()
            }
            progress.end()
            var output = RowOutput(format)
            try database.query(query, seconds: limitTime) { names in
                output.begin(names)
            } row: { values in
                writeToStandardOutput(output.add(values))
            }
            writeToStandardOutput(output.end())
        } catch let error as EntryQueryError {
            writeError("\(error)")
            throw ExitCode(1)
        }
    }
}

extension TableFormat: ExpressibleByArgument {}

/// Writes rows in a format.
struct RowOutput {
    private let format: TableFormat
    private var names: [String] = []
    private var table = TableText([])
    private var count = 0

    init(_ format: TableFormat) { self.format = format }

    mutating func begin(_ names: [String]) {
        self.names = names
        table = TableText(names)
    }

    /// What can be written when a row has come.
    mutating func add(_ values: [EntryDatabase.Cell]) -> String {
        count += 1
        switch format {
        case .table:
            table.add(values.map(\.text))
            return ""
        case .csv:
            return (count == 1 ? Self.line(names) : "") + Self.line(values.map(\.text))
        case .json:
            var object = DocumentDictionary()
            for (name, value) in zip(names, values) {
                object[name] = Self.value(value)
            }
            return (count == 1 ? "[\n" : ",\n") + "\(DocumentValue.dictionary(object))"
        }
    }

    /// What is written after the last row.
    func end() -> String {
        switch format {
        case .table: table.text
        case .csv: count == 0 ? Self.line(names) : ""
        case .json: count == 0 ? "[]\n" : "\n]\n"
        }
    }

    private static func value(_ cell: EntryDatabase.Cell) -> DocumentValue {
        switch cell {
        case .null: .null
        case .number(let text): DocumentNumber(text).map { .number($0) } ?? .string(text)
        case .text(let text): .string(text)
        }
    }

    /// A line of RFC 4180.
    private static func line(_ values: [String]) -> String {
        values.map { value -> String in
            guard value.contains(where: { "\",\r\n".contains($0) }) else { return value }
            let parts = value.split(separator: "\"", omittingEmptySubsequences: false)
            return "\"" + parts.joined(separator: "\"\"") + "\""
        }.joined(separator: ",") + "\r\n"
    }
}
