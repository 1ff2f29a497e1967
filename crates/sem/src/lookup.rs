//! The functions, by their names in the instruction table.

use crate::operands::PureFn;

macro_rules! functions {
    ($($module:ident { $($function:ident)* })*) => {
        /// The function that a row of the instruction table names: `"compare::setp"`.
        pub fn lookup(name: &str) -> Option<PureFn> {
            Some(match name {
                $($(concat!(stringify!($module), "::", stringify!($function)) => crate::$module::$function,)*)*
                _ => return None,
            })
        }
    };
}

functions! {
    alternate { add sub mul fma }
    compare { set setp selp slct }
    convert {
        int_to_int float_to_int int_to_float float_to_float narrow pack packed pack_stochastic pack_integers
    }
    float {
        testp copysign add sub mul fma mad div div_approx abs neg min max min3 max3 rcp rcp_approx sqrt sqrt_approx
        rsqrt_approx sin_approx cos_approx sin_cycles cos_cycles lg2_approx ex2_approx tanh_approx
    }
    half { add sub mul fma abs neg min max tanh_approx ex2_approx }
    half_compare { set setp }
    integer {
        add sub mul mul_wide mad mad_wide mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe bfi
        szext bmsk dp4a dp2a addc subc madc clmad
    }
    logic { and or xor not cnot shl shr shf lop3 prmt istypep }
    mixed { add sub fma mul add_narrow sub_narrow mul_narrow }
    video {
        add sub absdiff min max add2 sub2 absdiff2 min2 max2 add4 sub4 absdiff4 min4 max4 avrg2 avrg4 set set2 set4
        shl shr mad
    }
}
