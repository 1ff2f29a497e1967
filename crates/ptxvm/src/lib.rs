//! ptxvm
