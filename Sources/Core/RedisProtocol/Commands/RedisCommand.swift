import HTTPCore

/// A command as a value: for those that are rare. What is sent for each request is written directly
/// (`HeadWriter.appendCommand`).
package struct RedisCommand: Sendable, Hashable {
    /// The name, and what follows it.
    package var arguments: [[UInt8]]

    /// A command of these arguments.
    package init(_ arguments: [[UInt8]]) { self.arguments = arguments }

    /// A command of words.
    package init(_ words: String...) { arguments = words.map { Array($0.utf8) } }

    /// The bytes that it takes.
    package var byteCount: Int {
        arguments.reduce(RESPSize.command(arguments.count)) { $0 + RESPSize.argument($1.count) }
    }

    /// Appends it to what is written; ``byteCount`` bytes.
    package func write(to writer: inout HeadWriter) {
        writer.appendCommand(arguments.count)
        for argument in arguments { writer.appendArgument(argument.span) }
    }

    /// It as bytes.
    package var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: byteCount) { memory, count in
            var writer = HeadWriter(UnsafeMutableRawBufferPointer(memory))
            write(to: &writer)
            count = writer.count
        }
    }
}
