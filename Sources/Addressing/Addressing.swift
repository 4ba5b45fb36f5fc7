// Addressing
